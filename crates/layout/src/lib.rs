//! Which bytes: datatypes, file views, distributed arrays and striping, kept symbolic.
