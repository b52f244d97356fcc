//! Walls, each of which weakens what is heard through it: those on the straight line between two stations add up (the multi-wall
//! model of COST 231).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ground::Spot;

/// A wall, which is straight and thin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wall {
    /// One end, in metres east and north.
    pub from: [f32; 2],
    /// The other.
    pub to: [f32; 2],
    /// By how much it weakens a signal, in dB.
    pub db: f32,
}

/// All walls, by the squares of the plane that they touch.
#[derive(Debug, Default)]
pub(super) struct Walls {
    walls: Vec<Wall>,
    squares: BTreeMap<(i32, i32), Vec<u32>>,
    width_m: f32,
}

impl Walls {
    /// These walls, on a plane that is cut into squares of that width.
    pub(super) fn new(walls: Vec<Wall>, width_m: f32) -> Self {
        let mut squares: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        for (wall, number) in walls.iter().zip(0..) {
            for square in touched(wall.from, wall.to, width_m) {
                squares.entry(square).or_default().push(number);
            }
        }
        Self { walls, squares, width_m }
    }

    /// By how many dB a signal is weakened between two places.
    pub(super) fn db_between(&self, one: Spot, other: Spot) -> f32 {
        if self.walls.is_empty() {
            return 0.0;
        }
        let mut line = [[one.x, one.y], [other.x, other.y]];
        // A line through the end of a wall is the same both ways.
        if line[0] > line[1] {
            line.reverse();
        }
        let near = touched(line[0], line[1], self.width_m);
        let mut near: Vec<u32> = near
            .flat_map(|square| self.squares.get(&square).into_iter().flatten().copied())
            .collect();
        near.sort_unstable();
        near.dedup();
        let walls = near.iter().map(|number| &self.walls[*number as usize]);
        walls.filter(|wall| crosses(line, [wall.from, wall.to])).map(|wall| wall.db).sum()
    }
}

/// The squares of a width that the rectangle around a line touches.
fn touched(from: [f32; 2], to: [f32; 2], width_m: f32) -> impl Iterator<Item = (i32, i32)> {
    let range = move |axis: usize| {
        let square = |metres: f32| (metres / width_m).floor() as i32;
        square(from[axis].min(to[axis]))..=square(from[axis].max(to[axis]))
    };
    range(0).flat_map(move |column| range(1).map(move |row| (column, row)))
}

/// Whether two lines cross. What lies on a line counts as left of it, so that of two walls that share an end a line through that
/// end crosses one.
fn crosses(one: [[f32; 2]; 2], other: [[f32; 2]; 2]) -> bool {
    let is_parted = |by: [[f32; 2]; 2], ends: [[f32; 2]; 2]| {
        let [is_left, is_other_left] = ends.map(|end| is_left_of(by, end));
        is_left != is_other_left
    };
    is_parted(one, other) && is_parted(other, one)
}

fn is_left_of([from, to]: [[f32; 2]; 2], spot: [f32; 2]) -> bool {
    let [from, to, spot] = [from, to, spot].map(|[x, y]| [f64::from(x), f64::from(y)]);
    (to[0] - from[0]) * (spot[1] - from[1]) >= (to[1] - from[1]) * (spot[0] - from[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall(from: [f32; 2], to: [f32; 2], db: f32) -> Wall {
        Wall { from, to, db }
    }

    #[track_caller]
    fn check(walls: &[Wall], one: [f32; 2], other: [f32; 2], db: f32) {
        let walls = Walls::new(walls.to_vec(), 100.0);
        let spot = |[x, y]: [f32; 2]| Spot { x, y };
        assert_eq!(walls.db_between(spot(one), spot(other)), db, "from {one:?} to {other:?}");
        assert_eq!(walls.db_between(spot(other), spot(one)), db, "from {other:?} to {one:?}");
    }

    #[test]
    fn walls_between_two_places_add_up_and_others_dont_count() {
        let walls = [
            wall([10.0, -50.0], [10.0, 50.0], 6.0),
            wall([20.0, -500.0], [20.0, 500.0], 10.0),
            wall([30.0, 5.0], [30.0, 50.0], 3.0),
        ];
        check(&walls, [0.0, 0.0], [9.0, 0.0], 0.0);
        check(&walls, [0.0, 0.0], [15.0, 0.0], 6.0);
        check(&walls, [0.0, 0.0], [40.0, 0.0], 16.0);
        check(&walls, [0.0, 20.0], [40.0, 20.0], 19.0);
        check(&walls, [0.0, 60.0], [15.0, 60.0], 0.0);
        check(&walls, [-90.0, 0.0], [5.0, 90.0], 0.0);
    }

    #[test]
    fn a_line_through_the_corner_of_two_walls_crosses_one_and_one_along_a_wall_none() {
        let corner = [wall([0.0, 0.0], [0.0, 10.0], 5.0), wall([0.0, 0.0], [10.0, 0.0], 5.0)];
        check(&corner, [-5.0, -5.0], [5.0, 5.0], 5.0);
        let straight = [wall([0.0, -10.0], [0.0, 0.0], 5.0), wall([0.0, 0.0], [0.0, 10.0], 5.0)];
        check(&straight, [-5.0, 0.0], [5.0, 0.0], 5.0);
        check(&straight, [0.0, -20.0], [0.0, 20.0], 0.0);
    }
}
