//! The helper of `include/candor_helper.h`, on descriptor 0.

fn main() {
    candor_bridge::helper::run();
}
