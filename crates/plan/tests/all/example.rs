//! The example is the first driver that a new strategy meets: it must run.

#[path = "../../examples/driver.rs"]
mod driver;

#[test]
fn the_example_writes_every_byte_under_every_strategy() {
    driver::main().expect("the views are valid");
}
