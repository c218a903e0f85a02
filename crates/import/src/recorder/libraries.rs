//! Calls of HDF5 and PnetCDF, under the names that a trace has for them: one for all versions and types of a function.
//!
//! What is stored of them are ids. HDF5's come out of its calls, and what calls returned is not stored: only files that
//! are opened are known by name. PnetCDF stores the id of a file that it opened.

use super::calls::Reading;
use super::meaning::{Meaning, Object, What, Words};
use pio_trace::{Call, Layer, Op};

/// Of HDF5.
pub(super) fn hdf5(function: &str, words: &Words<'_>, reading: &mut Reading) -> Option<Meaning> {
    let call = call(hdf5_name(function), Layer::Hdf5)?;
    let (object, what) = match call {
        Call::H5Fcreate | Call::H5Fopen => {
            (Object::File(reading.builder.file(words.text(0))), What::OpenLibrary)
        }
        Call::H5DwriteChunk => (Object::None, What::MoveBelow { size: words.size(4) }),
        _ if moves_data(call) => (Object::None, What::MoveBelow { size: None }),
        _ => (Object::None, What::Other { size: 0 }),
    };
    Some(Meaning { call, object, what })
}

/// Of PnetCDF.
pub(super) fn pnetcdf(function: &str, words: &Words<'_>, reading: &mut Reading) -> Option<Meaning> {
    let call = call(&pnetcdf_name(function), Layer::Pnetcdf)?;
    let opens = call.op() == Op::Open;
    // No name of a handle of MPI-IO has a blank.
    let id = format!("PnetCDF {}", words.text(if opens { 4 } else { 0 }));
    let object = Object::Shared(reading.shared(&id));
    let what = match call.op() {
        Op::Open => What::OpenShared { file: reading.builder.file(words.text(1)), together: false },
        Op::Close => What::Close,
        _ if moves_data(call) => What::MoveBelow { size: None },
        _ => What::Other { size: 0 },
    };
    Some(Meaning { call, object, what })
}

fn call(name: &str, layer: Layer) -> Option<Call> {
    Call::ALL.iter().copied().find(|call| call.layer() == layer && call.name() == name)
}

fn moves_data(call: Call) -> bool {
    matches!(call.op(), Op::Read | Op::Write)
}

fn hdf5_name(function: &str) -> &str {
    match function {
        "H5Dcreate_anon" => "H5Dcreate",
        "H5Dextend" => "H5Dset_extent",
        "H5Acreate_by_name" => "H5Acreate",
        "H5Aopen_name" | "H5Aopen_idx" | "H5Aopen_by_name" => "H5Aopen",
        "H5Lcreate_hard" | "H5Lcreate_soft" | "H5Lcreate_external" => "H5Lcreate",
        // H5Dopen1 and H5Dopen2.
        _ => function.trim_end_matches(|last: char| last.is_ascii_digit()),
    }
}

/// `ncmpi_VERB_KIND[_TYPE][_all]` without the type.
fn pnetcdf_name(function: &str) -> String {
    if function == "ncmpi__enddef" {
        return "ncmpi_enddef".to_owned();
    }
    let is_type = |part: &str| {
        matches!(
            part,
            "text"
                | "schar"
                | "uchar"
                | "short"
                | "ushort"
                | "int"
                | "uint"
                | "long"
                | "float"
                | "double"
                | "longlong"
                | "ulonglong"
        )
    };
    let parts = function.split('_').enumerate().filter(|(index, part)| *index != 3 || !is_type(part));
    parts.map(|(_, part)| part).collect::<Vec<_>>().join("_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_types_have_one_name() {
        for (function, name) in [
            ("H5Dopen2", "H5Dopen"),
            ("H5Dread", "H5Dread"),
            ("H5Dread_multi", "H5Dread_multi"),
            ("H5Lcreate_soft", "H5Lcreate"),
            ("H5Tcommit1", "H5Tcommit"),
        ] {
            assert_eq!(call(hdf5_name(function), Layer::Hdf5).map(Call::name), Some(name));
        }
        for (function, name) in [
            ("ncmpi_put_vara_double_all", "ncmpi_put_vara_all"),
            ("ncmpi_put_var1", "ncmpi_put_var1"),
            ("ncmpi_iget_varn_ulonglong", "ncmpi_iget_varn"),
            ("ncmpi__enddef", "ncmpi_enddef"),
            ("ncmpi_get_vard_all", "ncmpi_get_vard_all"),
        ] {
            assert_eq!(call(&pnetcdf_name(function), Layer::Pnetcdf).map(Call::name), Some(name));
        }
        for function in ["H5Literate2", "H5", "ncmpi_put_att_text", "ncmpi_inq"] {
            assert_eq!(call(hdf5_name(function), Layer::Hdf5), None);
            assert_eq!(call(&pnetcdf_name(function), Layer::Pnetcdf), None);
        }
    }
}
