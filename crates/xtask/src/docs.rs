//! `cargo xtask docs`: the site, into target/site, without the network once its tools are there. Fails on warnings, on links that lead nowhere
//! inside the site, and where a reader's question does not find its page.

use crate::Step;

/// Python with Sphinx and what the gallery uses, made once under `target`, and again when its list changes.
pub(crate) const ENVIRONMENT: Step = Step {
    name: "environment of the site",
    program: "sh",
    arguments: &[
        "-c",
        "cmp -s docs/requirements.txt target/docs-env/requirements.txt && exit 0; \
         rm -rf target/docs-env && python3 -m venv target/docs-env && \
         target/docs-env/bin/pip install --quiet --disable-pip-version-check -r docs/requirements.txt && \
         cp docs/requirements.txt target/docs-env/requirements.txt",
    ],
    variables: &[],
};

/// In the profile and with the features of the tests, whose dependencies are built already.
const BUILD: Step = Step {
    name: "build",
    program: "cargo",
    arguments: &[
        "build",
        "--workspace",
        "--lib",
        "--bins",
        "--examples",
        "--locked",
    ],
    variables: &[],
};

const WHEEL: Step = Step {
    name: "wheel",
    program: "sh",
    arguments: &[
        "-c",
        "rm -rf target/wheels && \
         target/docs-env/bin/maturin build --locked --quiet --profile dev --features as-tested --out target/wheels",
    ],
    variables: &[],
};

const INSTALL: &str = "target/docs-env/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps target/wheels/*.whl && \
     rm -rf docs/reference/made docs/gallery && target/debug/examples/reference docs/reference/made";

/// The whole site.
pub(crate) const SITE: &[Step] = &[
    ENVIRONMENT,
    BUILD,
    WHEEL,
    Step {
        name: "package and reference",
        program: "sh",
        arguments: &["-c", INSTALL],
        variables: &[],
    },
    Step {
        name: "Rust's pages",
        program: "cargo",
        arguments: &[
            "doc",
            "--no-deps",
            "--locked",
            "--workspace",
            "--exclude",
            "mtmkl-testkit",
            "--exclude",
            "mtmkl-bench",
            "--exclude",
            "mtmkl-paper",
            "--exclude",
            "mtmkl-fuzz",
            "--exclude",
            "mtmkl-mutants",
            "--exclude",
            "xtask",
        ],
        variables: &[("RUSTDOCFLAGS", "-D warnings")],
    },
    Step {
        name: "site, its gallery run",
        program: "sh",
        arguments: &[
            "-c",
            "rm -rf target/site && \
             target/docs-env/bin/sphinx-build --fail-on-warning --keep-going --quiet -b html -d target/site-state docs target/site && \
             mkdir target/site/rust && cp -R target/doc/. target/site/rust/",
        ],
        variables: &[],
    },
    Step {
        name: "links",
        program: "target/docs-env/bin/python",
        arguments: &["docs/site/links.py", "target/site"],
        variables: &[],
    },
    Step {
        name: "questions that a reader asks",
        program: "target/docs-env/bin/python",
        arguments: &["docs/site/questions.py", "target/site"],
        variables: &[],
    },
];

/// Of the site what takes little time, after the wheel and the examples are built: every page, the gallery as text, links.
pub(crate) const QUICK: Step = Step {
    name: "site, without running the gallery",
    program: "sh",
    arguments: &[
        "-c",
        "target/docs-env/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps target/wheels/*.whl && \
         rm -rf docs/reference/made docs/gallery target/site-quick && \
         cargo build --quiet --workspace --example reference --locked && target/debug/examples/reference docs/reference/made && \
         target/docs-env/bin/sphinx-build --fail-on-warning --keep-going --quiet -b html -d target/site-quick-state docs target/site-quick && \
         target/docs-env/bin/python docs/site/links.py target/site-quick --without rust",
    ],
    variables: &[("MTMKL_GALLERY", "0")],
};
