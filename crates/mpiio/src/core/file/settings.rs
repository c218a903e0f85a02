//! What the launcher asked for, by environment variables.

use pio_plan::{Hints, Strategy};

use crate::places::{self, Places};

/// How collective operations are carried out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// `PIOSCOPE_STRATEGY`; two-phase if not set.
    pub(crate) strategy: Strategy,
    /// `PIOSCOPE_HINTS`: where the program gives none.
    pub(crate) hints: Hints,
    /// Not `PIOSCOPE_SHARED_MEMORY=off`: whether ranks of one node exchange data through shared memory.
    pub(crate) shared_memory: bool,
    /// `PIOSCOPE_TERMS`: what I/O costs at calibrated places.
    pub(crate) places: Places,
}

impl Settings {
    /// From the environment.
    ///
    /// # Errors
    /// The text names the variable and what it should be.
    pub(crate) fn from_environment() -> Result<Settings, String> {
        Settings::from(|name| std::env::var(name).ok())
    }

    fn from(value_of: impl Fn(&str) -> Option<String>) -> Result<Settings, String> {
        let strategy = match value_of("PIOSCOPE_STRATEGY") {
            Some(name) => name.parse().map_err(|error| format!("PIOSCOPE_STRATEGY: {error}"))?,
            None => Strategy::TwoPhase,
        };
        let hints = value_of("PIOSCOPE_HINTS").unwrap_or_default();
        let hints = Hints::parse(&hints).map_err(|error| format!("PIOSCOPE_HINTS: {error}"))?;
        let shared_memory = match value_of("PIOSCOPE_SHARED_MEMORY").as_deref() {
            None | Some("on") => true,
            Some("off") => false,
            Some(other) => return Err(format!("PIOSCOPE_SHARED_MEMORY: '{other}' (expected on or off)")),
        };
        let places = value_of(places::VARIABLE).unwrap_or_default();
        let places = Places::parse(&places).map_err(|error| format!("{}: {error}", places::VARIABLE))?;
        Ok(Settings { strategy, hints, shared_memory, places })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Result<Settings, String> {
        Settings::from(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn nothing_set_is_two_phase_through_shared_memory() {
        let settings = Settings::from(|_| None).unwrap();
        assert_eq!(settings.strategy, Strategy::TwoPhase);
        assert!(settings.shared_memory);
        assert_eq!(settings.hints, Hints::default());
        assert_eq!(settings.places, Places::default());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_variable() {
        assert!(
            with("PIOSCOPE_STRATEGY", "fast").unwrap_err().starts_with("PIOSCOPE_STRATEGY: unknown strategy")
        );
        assert!(
            with("PIOSCOPE_HINTS", "cb_nodes=0").unwrap_err().starts_with("PIOSCOPE_HINTS: hint cb_nodes")
        );
        assert!(with("PIOSCOPE_TERMS", "fast@/").unwrap_err().starts_with("PIOSCOPE_TERMS: 'fast'"));
        assert!(with("PIOSCOPE_SHARED_MEMORY", "no").unwrap_err().contains("expected on or off"));
        assert!(!with("PIOSCOPE_SHARED_MEMORY", "off").unwrap().shared_memory);
    }
}
