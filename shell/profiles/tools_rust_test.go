package profiles

import "testing"

func TestRust(t *testing.T) {
	testHarmless(t, `
		cargo build
		cargo build --release
		cargo b -p core --features a,b --target wasm32-unknown-unknown
		cargo check --workspace --all-targets
		cargo test
		cargo test parser::tests -- --nocapture --test-threads=1
		cargo test --doc -j 4
		cargo run
		cargo run --release -- --config x -v
		cargo run --bin server 8080
		cargo clippy -- -D warnings
		cargo clippy --all-targets --all-features -- -D warnings -A clippy::too_many_arguments
		cargo clippy --fix --allow-dirty
		cargo fmt
		cargo fmt --all -- --check
		cargo +nightly fmt
		cargo doc --no-deps
		cargo bench
		cargo remove serde
		cargo update
		cargo update -p serde --precise 1.0.1
		cargo tree -i serde
		cargo metadata --format-version 1 --no-deps
		cargo clean
		cargo new tool --lib
		cargo init
		cargo nextest run
		cargo fetch --locked
		cargo vendor
		cargo watch -x test
		cargo --version
		cargo --offline build
		rustc main.rs
		rustc --edition 2021 -O -o app main.rs
		rustc --version
		rustfmt src/main.rs
		rustfmt --check src/main.rs
		rustup show
		rustup toolchain list`)
	testAsking(t, `
		cargo --config 'build.rustc-wrapper="id"' build
		cargo --config='build.rustc-wrapper="id"' build
		cargo build --config x.toml
		cargo run --config x.toml
		cargo test --config=x
		cargo -Z unstable-options build
		cargo build -Zbuild-std
		cargo -C /tmp/x build
		cargo +evil build
		cargo +/tmp/toolchain build
		cargo build --manifest-path /tmp/x/Cargo.toml
		cargo build --manifest-path=/tmp/x/Cargo.toml
		cargo build --target-dir=/tmp/x
		cargo clippy -- -C linker=./x
		cargo clippy -- -Clinker=./x
		cargo install ripgrep
		cargo install --path .
		cargo publish
		cargo login
		cargo add --git https://example.com/x
		cargo add --path /tmp/x
		cargo add --registry evil x
		cargo fmt -- --config-path /tmp/x
		cargo doc --open
		cargo vendor /tmp/x
		cargo new /tmp/x
		cargo watch -s id
		cargo watch -x 'run; id'
		cargo nosuch
		cargo build --nosuch
		cargo build --man /tmp/x
		rustc -C linker=./x main.rs
		rustc -Clinker=./x main.rs
		rustc --codegen linker=x main.rs
		rustc -Zx main.rs
		rustc @opts
		rustc -o /tmp/x main.rs
		rustfmt /etc/x
		rustfmt --config-path /tmp/x a.rs
		rustup run nightly id
		rustup default nightly
		rustup update
		rustup toolchain link x /tmp/x`)
	testExact(t, `
		cargo build --target-dir out → writes out (--target-dir); project
		cargo fmt → project; writes .`)
}
