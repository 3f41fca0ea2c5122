//! `fit --json` is what `docs/fit.schema.json` says.

use serde_json::Value;

use crate::fixture::{Folder, curve, sites, three_classes, two_classes, two_tasks};

fn schema() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fit.schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_schema_is_one() {
    jsonschema::meta::validate(&schema()).unwrap();
}

#[test]
fn fits_of_every_kind_are_valid() {
    let folder = Folder::new();
    folder
        .file("two.csv", two_classes(24))
        .file("three.csv", three_classes(30))
        .file("tasks.csv", two_tasks(40))
        .file("curve.csv", curve(30))
        .file("sites.csv", sites(12))
        // One of the held-out classes may be missing, one task's target constant: figures that are no numbers.
        .file("flat.csv", "x,y\n1,5\n2,5\n");
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let fits = [
        "two.csv --target label --metric average-precision",
        "two.csv --target label --test-fraction 0.3 --class-weight balanced --metric AUC --kernel rbf:sigma=0.0001",
        "two.csv --target label --sharing lp --p 1 --baselines",
        "two.csv --target label --time-limit 0",
        "three.csv --target kind --baselines --test-fraction 0.3",
        "three.csv --target kind --multiclass ovo --sharing simplex",
        "tasks.csv --target label --task site --baselines",
        "tasks.csv --target label --task site --sharing independent",
        "tasks.csv --target label --task site --sharing tang --beta 0.5",
        "tasks.csv --target label --task site --sharing sum --term common:lp-ball,p=2 --term group",
        "tasks.csv --target label --task site --solver epf --max-passes 2",
        "curve.csv --target y --machine krr",
        "curve.csv --target y --machine svr --test flat.csv --ignore z",
        "two.csv --machine svdd --target label --C 0.2",
        "two.csv --machine svdd --target label --C 0.2 --sharing uniform",
        "two.csv --machine ocsvm --ignore label",
        "two.csv --target label --kernel sigmoid:gamma=1,coef0=-1 --allow-indefinite",
        "two.csv --target label --precision single",
        "tasks.csv --target label --task site --sharing common",
        "tasks.csv --target label --task site --sharing group --p 1.5 --q 2",
        "sites.csv --target fault --task site --sharing hierarchy --tree-columns region,town --radii 1,0.5,0.5,1",
        "sites.csv --target fault --task site --task-groups region --ignore town --transfer all,group,own --C auto --metric AUC",
        "tasks.csv --target label --task site --sharing box-simplex --upper 0.5",
        "tasks.csv --target label --task site --sharing prior-ball --radius 0.5",
        "tasks.csv --target label --task site --sharing prior-ball --kernel linear --kernel rbf --weights 1,0.5",
        "tasks.csv --target label --task site --sharing fixed --kernel linear --kernel rbf --weights 1,0.5",
        "tasks.csv --target label --task site --sharing sum --kernel linear --kernel rbf --term common:simplex --term \
         independent:box-simplex,upper=0.7 --term common:prior-ball,prior=1|0 --term common:fixed,weights=0|1",
    ];
    for arguments in fits {
        let ran = folder.run(&format!("fit {arguments} --json"));
        assert!(
            ran.code == 0 || ran.code == 1,
            "{arguments}: {}",
            ran.stderr
        );
        let object = ran.json();
        let faults: Vec<String> = validator
            .iter_errors(&object)
            .map(|fault| format!("{}: {fault}", fault.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{arguments}: {faults:#?}\n{object:#}");
        // Kernels that can be made from rows are certified in double precision.
        assert_eq!(object["rounded"], false, "{arguments}");
        assert_eq!(
            object["fallback"] == "indefinite",
            arguments.contains("--allow-indefinite"),
            "{arguments}"
        );
        assert_eq!(
            ran.code == 0,
            object["status"].as_str().unwrap().starts_with("converged"),
            "{arguments}"
        );
        let tasks = object["tasks"].as_array().unwrap();
        let kernels = object["kernels"].as_array().unwrap().len();
        for task in tasks {
            assert_eq!(
                task["weights"].as_array().unwrap().len(),
                kernels,
                "{arguments}"
            );
        }
        if let Some(specific) = object.get("specific") {
            assert_eq!(
                specific.as_array().unwrap().len(),
                tasks.len(),
                "{arguments}"
            );
        }
        assert_eq!(
            object.get("baselines").is_some(),
            arguments.contains("--baselines") || arguments.contains("--test")
        );
        assert_eq!(
            object["scores"]["held_out"],
            arguments.contains("--test"),
            "{arguments}"
        );
        assert_eq!(
            object.get("warnings").is_some(),
            ran.stderr.contains("warning: ") || ran.stderr.contains("without labels"),
            "{arguments}: {}",
            ran.stderr
        );
    }
}

/// The places of all objects in a value.
fn objects(value: &Value, place: &mut String, found: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(object) => {
            found.push(place.clone());
            object
                .iter()
                .map(|(key, value)| (key.clone(), value))
                .collect()
        }
        Value::Array(values) => values
            .iter()
            .enumerate()
            .map(|(number, value)| (number.to_string(), value))
            .collect(),
        _ => Vec::new(),
    };
    for (key, value) in inner {
        let length = place.len();
        *place += &format!("/{key}");
        objects(value, place, found);
        place.truncate(length);
    }
}

#[test]
fn the_schema_refuses_what_is_not_a_fit() {
    let folder = Folder::new();
    folder.file("two.csv", two_classes(24));
    let good = folder.run("fit two.csv --target label --json").json();
    let validator = jsonschema::validator_for(&schema()).unwrap();
    assert!(validator.is_valid(&good));
    for (key, value) in [
        ("status", Value::from("done")),
        ("passes", Value::from(-1)),
        ("tasks", Value::Array(Vec::new())),
        ("kernels", Value::from("rbf")),
        ("surprise", Value::Null),
    ] {
        let mut wrong = good.clone();
        wrong[key] = value;
        assert!(!validator.is_valid(&wrong), "{key}");
    }
    // Nothing is let through at any depth.
    let mut places = Vec::new();
    objects(&good, &mut String::new(), &mut places);
    for place in [
        "",
        "/machine",
        "/sharing",
        "/solver",
        "/tasks/0",
        "/scores/methods/0/tasks/0",
    ] {
        assert!(places.iter().any(|known| known == place), "{place}");
    }
    for place in places {
        let mut wrong = good.clone();
        wrong.pointer_mut(&place).unwrap()["surprise"] = Value::from(1);
        assert!(!validator.is_valid(&wrong), "{place}");
    }
    for key in [
        "solver",
        "fallback",
        "rounded",
        "status",
        "objective",
        "bound",
        "gap",
        "passes",
        "kernels",
        "tasks",
        "seconds",
    ] {
        let mut wrong = good.clone();
        wrong.as_object_mut().unwrap().remove(key);
        assert!(!validator.is_valid(&wrong), "{key}");
    }
}
