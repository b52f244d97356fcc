//! RI5CY and its kin (GAP8): rotations, hardware loops and post-incremented memory accesses.
