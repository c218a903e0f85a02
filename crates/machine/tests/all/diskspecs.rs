//! Specifications of drives: what is read from them, and what is wrong with one is named by file, line and key.

// A test that cannot set up its scene fails there.

use std::fs;
use std::path::PathBuf;

use pio_machine::Duration;
use pio_machine::disk::{BusBlock, Drive, Layout, SeekCurve, Sparing, diskspecs};

/// The three files of a drive.
struct Files {
    folder: tempfile::TempDir,
    specs: String,
    model: String,
    seek: String,
}

const SPECS: &str = include_str!("../drive/test.diskspecs");

const MODEL: &str = include_str!("../drive/test.model");

const SEEK: &str = include_str!("../drive/test.seek");

impl Files {
    fn new() -> Files {
        let text = |text: &str| text.to_owned();
        Files {
            folder: tempfile::tempdir().unwrap(),
            specs: text(SPECS),
            model: text(MODEL),
            seek: text(SEEK),
        }
    }

    fn load(&self) -> Result<Drive, String> {
        for (name, text) in
            [("test.diskspecs", &self.specs), ("test.model", &self.model), ("test.seek", &self.seek)]
        {
            fs::write(self.folder.path().join(name), text).unwrap();
        }
        let folder = format!("{}/", self.folder.path().display());
        diskspecs::load(&self.path()).map_err(|error| error.to_string().replace(&folder, ""))
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("test.diskspecs")
    }
}

/// The error for a line of one of the files replaced, with the line's number.
fn error(line: &str, instead: &str) -> (usize, String) {
    let mut files = Files::new();
    let text =
        [&mut files.specs, &mut files.model, &mut files.seek].into_iter().find(|text| text.contains(line));
    let text = text.unwrap();
    let number = 1 + text[..text.find(line).unwrap()].matches('\n').count();
    *text = text.replacen(line, instead, 1);
    (number, files.load().unwrap_err())
}

#[track_caller]
fn says(line: &str, instead: &str, expected: &str) {
    let (number, found) = error(line, instead);
    assert_eq!(found, expected.replace("LINE", &number.to_string()));
}

#[test]
fn a_drive_is_read_from_its_three_files() {
    let drive = Files::new().load().unwrap();
    let ms = |ms: f64| Duration::from_seconds(ms / 1e3);
    assert_eq!((drive.name.as_str(), drive.surfaces, drive.cylinders, drive.blocks), ("TEST", 2, 20, 400));
    let Layout::Zoned(layout) = &drive.layout else { panic!("zones were expected") };
    assert_eq!(layout.sparing, Sparing::ZoneEnd);
    assert_eq!(
        (layout.zones[0].slips.as_slice(), layout.zones[1].remaps.as_slice()),
        ([3, 7].as_slice(), [(4, 159)].as_slice())
    );
    assert_eq!(drive.mechanics.seek, SeekCurve::Measured(vec![(1, ms(1.0)), (19, ms(5.0))]));
    assert_eq!((drive.mechanics.period, drive.mechanics.write_settle_ps), (ms(10.0), -500_000_000));
    // Overheads are scaled, the bus is not.
    assert_eq!((drive.overheads.read_hit, drive.bus_block), ([ms(0.2), ms(0.4)], BusBlock::both(ms(0.1))));
    assert!(drive.not_modelled.is_empty());
}

#[test]
fn what_the_model_leaves_out_is_told() {
    let mut files = Files::new();
    files.specs = files.specs.replace("Preseeking level = 0", "Preseeking level = 2");
    files.model = files.model.replace("slips = [ 7, 3 ]", "slips = [ 7, 200 ]");
    let one_segment = "Maximum number of write segments = 1";
    files.specs = files.specs.replace(one_segment, "Maximum number of write segments = 2");
    let expected = [
        "slips and defects beyond the end of their zone: 1",
        "Preseeking level = 2",
        "Maximum number of write segments = 2",
    ];
    assert_eq!(files.load().unwrap().not_modelled, expected);
}

#[test]
fn other_forms_of_seek_curve_are_read() {
    let with = |kind: &str| {
        let mut files = Files::new();
        files.model = files.model.replace("Seek type = extracted,", kind);
        files.load().map(|drive| drive.mechanics.seek.time(9).picoseconds() / 1_000_000)
    };
    assert_eq!(with("Seek type = constant, Constant seek time = 3.0,"), Ok(3_000));
    let three = "Single cylinder seek time = 1.0, Average seek time = 2.0, Full strobe seek time = 3.0,";
    assert_eq!(with(&format!("Seek type = linear, {three}")), Ok(2_175));
    assert!(with(&format!("Seek type = curve, {three}")).is_ok());
    let values = "HPL seek equation values = [ 15, 1.0, 0.5, 2.0, 0.1, -1.0 ],";
    assert_eq!(with(&format!("Seek type = hpl, {values}")), Ok(2_500));
    let ten = "First ten seek times = [ 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9 ],";
    assert_eq!(with(&format!("Seek type = hplplus10, {values} {ten}")), Ok(1_800));
    let wrong = with(
        "Seek type = curve, Single cylinder seek time = 3.0, Average seek time = 2.0, Full strobe seek time = 3.0,",
    );
    assert!(wrong.unwrap_err().contains("Average seek time = 2.0: expected at least that of one cylinder"));
}

#[test]
fn a_wrong_value_is_refused_with_what_is_allowed() {
    says(
        "Number of data surfaces = 2",
        "Number of data surfaces = 0",
        "test.model:LINE: Number of data surfaces = 0: expected a whole number from 1 to 1024",
    );
    says(
        "Rotation speed (in rpms) = 6000",
        "Rotation speed (in rpms) = fast",
        "test.model:LINE: Rotation speed (in rpms) = fast: expected a whole number from 1 to 1000000",
    );
    says(
        "Read hit over. after read = 0.1",
        "Read hit over. after read = NaN",
        "test.diskspecs:LINE: Read hit over. after read = NaN: expected a number from 0 to 100000",
    );
    says(
        "Seek type = extracted",
        "Seek type = quick",
        "test.model:LINE: Seek type = quick: expected constant or linear or curve or hpl or hplplus10 or extracted",
    );
    says(
        "slips = [ 7, 3 ]",
        "slips = [ 7, -3 ]",
        "test.model:LINE: slips = -3: expected whole numbers from 0 on",
    );
    says(
        "Number of spares = 4",
        "Number of spares = 200",
        "test.model:LINE: Number of spares = 200: expected spares, reserved and slipped sectors that leave the zone some blocks",
    );
    says(
        "First cylinder number = 10",
        "First cylinder number = 0",
        "test.model:LINE: First cylinder number = 0: expected a whole number from 1 to 19",
    );
    says(
        "19, 5.0",
        "19; 5.0",
        "test.seek:LINE: found '19; 5.0': expected a distance in cylinders, a comma, and a time in ms",
    );
    says("19, 5.0", "1, 5.0", "test.seek:3: distance 1 a second time");
}

#[test]
fn unknown_missing_and_doubled_keys_are_named() {
    let (line, found) = error("Head switch time = 0.1", "Head swich time = 0.1");
    // The block that lacks a key, for nothing else in it is known to be wrong yet.
    assert_eq!(
        found,
        format!(
            "test.model:{}: 'Head switch time' is missing (expected a number from 0 to 100000)",
            line - 5
        )
    );
    let (line, found) = error("Head switch time = 0.1", "Head switch time = 0.1, Colour = red");
    assert!(
        found.starts_with(&format!("test.model:{line}: unknown key 'Colour' (known here: Access time type,")),
        "{found}"
    );
    says(
        "Head switch time = 0.1",
        "Head switch time = 0.1, Head switch time = 0.2",
        "test.model:LINE: 'Head switch time' a second time",
    );
}

#[test]
fn a_text_that_is_none_is_refused_where_it_ends_to_be_one() {
    says(
        "Block count = 400,",
        "Block count 400,",
        "test.model:LINE: found 'Block count 400,': expected key = value",
    );
    says("Block count = 400,", "Block count = 400; x = [", "test.model:LINE: found '[': expected ',' or '}'");
    let mut files = Files::new();
    files.specs.truncate(200);
    assert!(files.load().unwrap_err().starts_with("test.diskspecs:"));
    files.specs = "text".to_owned();
    assert_eq!(
        files.load().unwrap_err(),
        "test.diskspecs:1: found the end: expected a block: kind name { key = value, ... }"
    );
    files.specs.clear();
    assert_eq!(
        files.load().unwrap_err(),
        "test.diskspecs:1: 0 disksim_disk blocks: expected one drive a file"
    );
    files.specs = "a { b = [".repeat(100);
    assert!(files.load().unwrap_err().contains("at most 32 deep"));
    files.specs = "source test.diskspecs".to_owned();
    assert!(files.load().unwrap_err().contains("at most 32 deep"));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let mut files = Files::new();
    files.model = files.model.replace("test.seek", "gone.seek");
    assert!(files.load().unwrap_err().starts_with("gone.seek: No such file"));
    let missing = diskspecs::load("nowhere/a.diskspecs".as_ref()).unwrap_err().to_string();
    assert!(missing.starts_with("nowhere/a.diskspecs: No such file"), "{missing}");
}

#[test]
fn a_tree_of_tracks_is_read_and_checked() {
    let tree = |idx: &str| {
        let mut files = Files::new();
        let (from, to) =
            (files.model.find("   Layout Model").unwrap(), files.model.find("   Mechanical").unwrap());
        let layout = format!(
            "   Layout Model = dm_layout_g4 {{ TP = [ 0, 9, 10 ], IDX = [ {idx} ], Slips = [ 5, 1 ], Remaps = [] }},\n"
        );
        files.model.replace_range(from..to, &layout);
        files.load()
    };
    let leaf = "[ 0, 0, 0.0, 10, 1, 0.0, 10, 1, TRACK, 0, 1 ]";
    let drive = tree(&format!("{leaf}, [ 0, 0, 0.25, 10, 1, 0.3, 200, 20, IDX, 0 ]")).unwrap();
    let Layout::Indexed(layout) = drive.layout else { panic!("a tree was expected") };
    assert_eq!((layout.nodes.len(), layout.slips), (2, vec![(5, 1)]));
    for wrong in [
        "",
        "[]",
        "[ 0, 0, 0.0, 10, 1, 0.0, 10, 1, TRACK, 1, 1 ]",
        "[ 0, 0, 0.0, 10, 1, 0.0, 10, 1, TRACK, 0, 2 ]",
        "[ 0, 0, 0.0, 10, 1, 0.0, 10, 1, IDX, 0 ]",
        "[ 0, 0, 0.0, 0, 1, 0.0, 10, 1, TRACK, 0, 1 ]",
        "[ 0, 0, 0.0, 10 ]",
    ] {
        assert!(tree(wrong).unwrap_err().contains("IDX"), "{wrong}");
    }
}
