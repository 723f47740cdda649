//! The help of every command is one snapshot: no flag changes unseen.

use crate::world::World;

/// One snapshot a command, so that a change of one text is a change of one file.
#[test]
fn the_help_of_every_command() {
    let world = World::new();
    insta::assert_snapshot!("nmem", world.nmem(&["--help"]).text());
    for command in nmem::cli::definition().get_subcommands() {
        let name = command.get_name();
        insta::assert_snapshot!(format!("nmem-{name}"), world.nmem(&[name, "--help"]).text());
    }
}

#[test]
fn wrong_usage_exits_with_2_and_says_what_to_do() {
    let world = World::new();
    insta::assert_snapshot!(world.nmem(&["serch", "x"]).text(), @"
    --- stderr
    error: unrecognized subcommand 'serch'

      tip: some similar subcommands exist: 'serve', 'search'

    Usage: nmem <COMMAND>

    For more information, try '--help'.
    [exit 2]
    ");
    insta::assert_snapshot!(world.nmem(&["search", "x", "--since", "soon"]).text(), @"
    --- stderr
    nmem: nothing is recorded for project yet; --all searches all projects
    [exit 0]
    ");
    assert_eq!(world.nmem(&["search", "--limit", "many"]).code, Some(2));
    assert_eq!(world.nmem(&["record", "--no-such-flag"]).text(), "[exit 0]", "a hook never fails");
}
