//! Columns of numbers as base64 of the smallest typed array that holds them, for a page's script.

/// A column: its values decide its type.
pub(crate) enum Column {
    /// Whole numbers from 0.
    Unsigned(Vec<u64>),
    /// Whole numbers.
    Signed(Vec<i64>),
    /// Rounded to 24 binary digits.
    Float(Vec<f32>),
}

impl Column {
    /// A JSON array: the type's name as the page's script knows it, and the values; or `all`, how many there are, and the
    /// value that all have.
    pub(crate) fn json(&self) -> String {
        if let Some(value) = self.only_value() {
            return format!("[\"all\",{},{value}]", self.len());
        }
        let (name, bytes) = self.encoded();
        format!("[\"{name}\",\"{}\"]", base64(&bytes))
    }

    /// The value that all have; none if they differ, or are too few for it to matter.
    fn only_value(&self) -> Option<String> {
        fn same<T: PartialEq + Copy + ToString>(values: &[T]) -> Option<String> {
            let first = *values.first().filter(|_| values.len() > 8)?;
            values.iter().all(|value| *value == first).then(|| first.to_string())
        }
        match self {
            Column::Unsigned(values) => same(values),
            Column::Signed(values) => same(values),
            Column::Float(values) => same(values),
        }
    }

    fn len(&self) -> usize {
        match self {
            Column::Unsigned(values) => values.len(),
            Column::Signed(values) => values.len(),
            Column::Float(values) => values.len(),
        }
    }

    fn encoded(&self) -> (&'static str, Vec<u8>) {
        match self {
            Column::Unsigned(values) => unsigned(values),
            Column::Signed(values) => {
                if values.iter().all(|&value| i32::try_from(value).is_ok()) {
                    ("i32", values.iter().flat_map(|&value| (value as i32).to_le_bytes()).collect())
                } else {
                    ("f64", values.iter().flat_map(|&value| (value as f64).to_le_bytes()).collect())
                }
            }
            Column::Float(values) => ("f32", values.iter().flat_map(|value| value.to_le_bytes()).collect()),
        }
    }
}

fn unsigned(values: &[u64]) -> (&'static str, Vec<u8>) {
    match values.iter().copied().max().unwrap_or(0) {
        0..=0xff => ("u8", values.iter().map(|&value| value as u8).collect()),
        0x100..=0xffff => ("u16", values.iter().flat_map(|&value| (value as u16).to_le_bytes()).collect()),
        0x1_0000..=0xffff_ffff => {
            ("u32", values.iter().flat_map(|&value| (value as u32).to_le_bytes()).collect())
        }
        // The script's numbers are these: exact up to 2^53.
        _ => ("f64", values.iter().flat_map(|&value| (value as f64).to_le_bytes()).collect()),
    }
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            if digit <= group.len() {
                text.push(char::from(ALPHABET[(bits >> (18 - 6 * digit) & 63) as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_the_standard() {
        // RFC 4648, section 10.
        for (plain, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn the_largest_value_decides() {
        assert_eq!(Column::Unsigned(vec![1, 255]).json(), "[\"u8\",\"Af8=\"]");
        assert_eq!(Column::Unsigned(vec![256]).json(), "[\"u16\",\"AAE=\"]");
        assert_eq!(Column::Unsigned(vec![1 << 40]).encoded().0, "f64");
        assert_eq!(Column::Signed(vec![-1]).json(), "[\"i32\",\"/////w==\"]");
        assert_eq!(Column::Signed(vec![-3; 9]).json(), "[\"all\",9,-3]");
        assert_eq!(Column::Float(vec![0.5; 20]).json(), "[\"all\",20,0.5]");
    }
}
