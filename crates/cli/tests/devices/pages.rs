//! The commands of the pages that a newcomer reads first, as they stand there, on real processes.

mod page;
mod scene;

use std::path::{Path, PathBuf};

use crate::guests::{copy, package};
use scene::Scene;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(page: &str) -> String {
    std::fs::read_to_string(repository().join(page)).unwrap()
}

/// The house of the readme's first example: its thermostats, and a dashboard on the device that commands are about.
const HOUSE: &str = r"
```console
$ tenure hub --data hub --owner own --listen 127.0.0.1:7369 > hub.log 2>&1 &
$ tenure device --data attic --listen 127.0.0.1:7370 --hub 127.0.0.1:7369 > attic.log 2>&1 &
$ tenure device --data cellar --listen 127.0.0.1:7371 --hub 127.0.0.1:7369 > cellar.log 2>&1 &
$ tenure device --data garden --listen 127.0.0.1:7372 --hub 127.0.0.1:7369 > garden.log 2>&1 &
$ tenure use garden --hub 127.0.0.1:7369
device  garden
hub     127.0.0.1:7369
$ tenure list --device attic
attic has no machines
$ tenure list --device cellar
cellar has no machines
```

```sh
tenure install packages/thermostat.tenure --grant all --device attic
tenure install packages/thermostat.tenure --grant all --device cellar
tenure install packages/dashboard.tenure --grant all
tenure call thermostat set 17.5 --device cellar
```
";

#[test]
fn every_command_of_the_readme_does_what_the_page_says() {
    let page = read("README.md");
    let (first, rest) = page.split_once("\n## ").unwrap();
    let mut house = Scene::new(&["tenure call dashboard show"]);
    let packages = house.folder().join("packages");
    std::fs::create_dir(&packages).unwrap();
    for name in ["thermostat", "dashboard"] {
        let file = format!("{name}.tenure");
        std::fs::copy(package(name), packages.join(file)).unwrap();
    }
    house.play(HOUSE);
    assert_eq!(house.play(first), 1);
    drop(house);
    assert!(Scene::new(&[]).play(rest) > 8);
}

#[test]
fn every_command_of_the_guide_does_what_the_page_says() {
    assert!(Scene::new(&[]).play(&read("docs/guide.md")) > 25);
}

#[test]
fn every_command_of_the_tutorial_does_what_the_page_says() {
    let mut scene = Scene::new(&[
        "tenure call diary",
        "tenure call tank left",
        "tenure call alarm",
        "tenure call bed",
        "tenure call forecast tomorrow",
        "tenure tree tank",
    ]);
    let greenhouse = "examples/greenhouse";
    copy(&repository().join(greenhouse), &scene.folder().join(greenhouse));
    assert!(scene.play(&read("docs/tutorial.md")) > 30);
}
