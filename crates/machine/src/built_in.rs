//! The descriptions that come with us: `machines/*.toml` and `machines/parallel/*.toml`.

use crate::buffers::Computer;
use crate::error::MachineError;

const TEXTS: &[(&str, &str)] = &[
    ("beegfs", include_str!("../../../machines/parallel/beegfs.toml")),
    ("burst-buffer", include_str!("../../../machines/parallel/burst-buffer.toml")),
    ("daos", include_str!("../../../machines/parallel/daos.toml")),
    ("dragonfly-2048", include_str!("../../../machines/dragonfly-2048.toml")),
    ("fly-64", include_str!("../../../machines/fly-64.toml")),
    ("gpfs", include_str!("../../../machines/parallel/gpfs.toml")),
    ("infiniband-nthu", include_str!("../../../machines/infiniband-nthu.toml")),
    ("lustre", include_str!("../../../machines/parallel/lustre.toml")),
    ("nfs", include_str!("../../../machines/parallel/nfs.toml")),
    ("paragon-caltech", include_str!("../../../machines/paragon-caltech.toml")),
    ("pios-64", include_str!("../../../machines/pios-64.toml")),
    ("qsnet-64", include_str!("../../../machines/qsnet-64.toml")),
    ("sp-argonne", include_str!("../../../machines/sp-argonne.toml")),
    ("tree-64", include_str!("../../../machines/tree-64.toml")),
];

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TEXTS.iter().map(|(name, _)| *name)
}

/// The file's name and its text.
pub(crate) fn text(name: &str) -> Result<(String, String), MachineError> {
    match TEXTS.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Ok((format!("machines/{name}.toml"), (*text).to_owned())),
        // Read as a machine, it says what it is.
        None if Computer::cray_ymp()?.name == name => {
            let (file, text) = Computer::CRAY_YMP;
            Ok((file.to_owned(), text.to_owned()))
        }
        None => Err(MachineError::UnknownMachine {
            name: name.to_owned(),
            known: names().collect::<Vec<_>>().join(", "),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    #[test]
    fn all_can_be_read_and_are_called_what_their_file_is() {
        for name in names() {
            assert_eq!(Machine::built_in(name).unwrap().name, name);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_those_known() {
        let message = text("cray").unwrap_err().to_string();
        assert_eq!(
            message,
            "no machine 'cray' (a path of a .toml file, or one of: beegfs, burst-buffer, daos, dragonfly-2048, \
             fly-64, gpfs, infiniband-nthu, lustre, nfs, paragon-caltech, pios-64, qsnet-64, sp-argonne, tree-64)"
        );
    }
}
