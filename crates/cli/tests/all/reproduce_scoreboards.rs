//! `pioscope reproduce io500`, `mlperf-storage` and `lustre-ior`, as a user runs them.

use std::fs;

use crate::support::Place;

#[test]
fn carried_runs_are_predicted_and_the_worst_come_first() {
    let place = Place::new();
    let out = place.pioscope(["reproduce", "io500"]).succeeds().out;
    for expected in [
        "more clients: hard read, GiB/s",
        "unchanged 55 %, in proportion 96 %",
        "IO500 isc20, verified",
        "benchmark issue isc23, no list named",
        "nothing is random",
    ] {
        assert!(out.contains(expected), "{expected}: {out}");
    }
    let of_easy_writes = out.split("more clients: easy write, GiB/s").nth(2).unwrap();
    let first = of_easy_writes.lines().nth(3).unwrap();
    assert!(first.contains("XF_Lab") && first.contains("outside"), "{first}");
}

/// A system that is not carried is predicted from those that are.
#[test]
fn runs_of_ones_own() {
    let place = Place::new();
    fs::create_dir(place.join("own")).unwrap();
    fs::write(
        place.join("own/configurations.csv"),
        "submitter,system,model,accelerator,accelerators,hosts,MB_per_s,AU_percent,AU_needed_percent,\
         samples_per_s_if_never_waiting,record_B,file_B,client_nic_ports_Gbit_s,client_cores\n\
         Own,New_Nclient1,unet3d,h100,8,1,22000,93,90,173.3,146600628,146600628,2 x 200,96\n\
         Own,New_Nclient1,resnet50,h100,70,1,13000,91,90,125000,114660,143444000,2 x 200,96\n",
    )
    .unwrap();
    let out = place.pioscope(["reproduce", "mlperf-storage", "--data", "own"]).succeeds().out;
    assert!(out.contains("Own, New, 1 host") && out.contains("unet3d h100 → resnet50 h100"), "{out}");
    assert!(!out.contains("YanRongTech"), "{out}");
}

#[test]
fn what_cannot_be_read_is_refused_by_name() {
    let place = Place::new();
    place.pioscope(["reproduce", "lustre-ior"]).fails_with("give their folder with --data");
    place.pioscope(["reproduce", "io500", "--data", "no"]).fails_with("no: no io500.csv there");
    fs::write(place.join("io500.csv"), "system_family,file_system\na,b\n").unwrap();
    let io500 = || place.pioscope(["reproduce", "io500", "--data", "."]);
    io500().fails_with("io500.csv: no column file_system_name, ");
    let headings = "system_family,file_system,file_system_name,io500_list,io500_version,student_competition,\
                    marked_invalid,client_nodes,storage_servers,file_system_TiB,ior_easy_api,ior_hard_api,\
                    ior_easy_write_GiB_s,ior_easy_read_GiB_s,ior_hard_write_GiB_s,ior_hard_read_GiB_s";
    let row = "Own,Lustre,a,,,0,0,1e300,4,100,POSIX,POSIX,10,12,1,2";
    fs::write(place.join("io500.csv"), format!("{headings}\n{row}\n")).unwrap();
    io500().fails_with("io500.csv, line 2, column client_nodes: \"1e300\" is not a whole number");
    fs::write(place.join("io500.csv"), format!("{headings}\n{}\n", row.replace("1e300", ""))).unwrap();
    io500().fails_with("io500.csv: no row can be used. Left out of 1 rows: 1 without client_nodes.");
}

/// They are no part of the command: nothing else reads them.
#[test]
fn machines_of_today_can_be_predicted_for() {
    let place = Place::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/today");
    let mut machines = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let machine = path.to_str().unwrap();
            let workload = ["predict", "--workload", "ior-easy,ranks=8", "--strategy", "independent"];
            let out = place.pioscope(workload.into_iter().chain(["--machine", machine])).succeeds().out;
            assert!(out.contains("GiB/s"), "{out}");
            machines += 1;
        }
    }
    assert!(machines > 0);
}
