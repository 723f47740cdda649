//! The help of every command is one snapshot: no flag changes unseen.

mod world;

use world::World;

#[test]
fn the_help_of_every_command() {
    let world = World::new();
    let mut all = world.nmem(&["--help"]).text();
    for command in nmem::cli::definition().get_subcommands() {
        all += &format!("\n\n$ nmem {} --help\n{}", command.get_name(), world.nmem(&[command.get_name(), "--help"]).text());
    }
    insta::assert_snapshot!(all, @r#"
    Memory for coding agents: one binary, one SQLite file, nothing running

    Usage: nmem <COMMAND>

    Commands:
      record     Take one hook event on stdin (agents call this)
      context    Show what the next session here would be given
      search     Find memories, prompts, answers and tool uses by words
      units      Show work units: what was worked on, piece by piece
      show       Show one memory, session, work unit, prompt or tool use whole
      status     Show what is stored, what waits and what went wrong
      patterns   Show what recurs: the same failure, a file that is mended again and again, lessons of
                 one tag
      install    Hook nmem into an agent
      uninstall  Take nmem's hooks out again; what was recorded stays
      demo       Play a recorded session through the real hooks, and show what is remembered
      doctor     Find out what is wrong, and mend what is safe to mend
      remember   Remember something by hand
      edit       Mend a memory: change what it says
      pin        Tell every session of a memory
      unpin      No longer tell every session of a memory
      supersede  Say that one memory no longer holds, and which one does instead
      forget     Forget for good: by id, session, project, time or text
      export     Write everything that is stored as JSON Lines: a copy to keep, or to take to another
                 machine
      restore    Read an export back: all of it or nothing
      distil     Ask a model now about all that waits for one
      domain     What kind of work a project is: list, show, set, check
      project    Which folders are one project: list, rename, merge, split
      off        Stop recording: everywhere, in a project, in a session; for good or for a while
      on         Go on recording
      trust      Show what a repository's .nmem.toml asks for, and let it
      rad        Answer one request of another program: JSON on stdin, JSON on stdout
      help       Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Start with `nmem demo`, then `nmem install claude-code`.
    [exit 0]

    $ nmem record --help
    Take one hook event on stdin (agents call this)

    Usage: nmem record [OPTIONS]

    Options:
          --platform <NAME>  The agent that sends the event; detected from the payload where not given
      -h, --help             Print help

    Example: nmem record < event.json

    Always exits with 0. Prints nothing, or the JSON that the platform accepts.
    [exit 0]

    $ nmem context --help
    Show what the next session here would be given

    Usage: nmem context [OPTIONS]

    Options:
          --project <DIR>    Look at the project of this folder instead of the current one
          --query <TEXT>     What a session would be given that begins with this request
          --file <PATH>...   What it would be given with these files in play
          --why              Say what brought each piece of work there
          --budget <BYTES>   Bytes of the block that an agent would be given [default: the setting
                             context_bytes]
          --json             Print one JSON object; `text` is what an agent would be given
          --platform <NAME>  The agent that sends the event on stdin
      -h, --help             Print help

    Example: nmem context --json
             nmem context --query 'the exporter breaks rows with commas' --why
             nmem context --file src/export.rs

    With a hook event on stdin it registers the session and answers as the agent expects.
    [exit 0]

    $ nmem search --help
    Find memories, prompts, answers and tool uses by words

    Usage: nmem search [OPTIONS] [QUERY]...

    Arguments:
      [QUERY]...  Words to look for

    Options:
          --kind <KIND>        Kinds to look at; memory is all of observation, summary, decision,
                               lesson, task and entity [default: all that can match] [possible values:
                               memory, observation, summary, decision, lesson, task, entity, unit,
                               prompt, tool]
          --file <PATH>        Only memories and tool uses on this file
          --type <TYPE>        Only memories of this type: bugfix, feature, discovery, …
          --concept <CONCEPT>  Only memories with this concept: gotcha, how-it-works, …
          --platform <NAME>    Only what came from this agent
          --since <TIME>       Only what came later: 2026-11-01, 7d, 12h, yesterday
          --until <TIME>       Only what came earlier
          --all                Look at all projects
          --limit <N>          Results to show; 0 for all [default: 10]
          --format <FORMAT>    How to print [default: text] [possible values: text, full, json, md]
          --json               Print one JSON object a line
          --project <DIR>      Look at the project of this folder instead of the current one
      -h, --help               Print help

    Example: nmem search login "query string" -logout
             nmem search --type bugfix --file login.rs --since 30d

    Any of the words counts, ranked by relevance; "a phrase", -not and prefix* are understood.
    Without words the newest come first.
    [exit 0]

    $ nmem units --help
    Show work units: what was worked on, piece by piece

    Usage: nmem units [OPTIONS] [ID]...

    Arguments:
      [ID]...  Only these units

    Options:
          --session <ID>      Only units of this session (s14, or the beginning of the agent's own id)
          --since <TIME>      Only units that were at work later: 2026-11-01, 7d, 12h, yesterday
                              [default for md: 7d]
          --why               Say of each unit why it begins where it does, with signals and weights
          --format <FORMAT>   How to print [default: text] [possible values: text, md, json]
          --limit <N>         Units to show; 0 for all [default: 20; all in a report]
          --all               Look at all projects
          --replay <FILE>...  Run the detector over recorded streams of hook events, in a scratch
                              database; one JSON object a file
          --json              Print one JSON object a line
          --project <DIR>     Look at the project of this folder instead of the current one
      -h, --help              Print help

    Example: nmem units --since 7d --why

    A report of the week for a team: nmem units --format md. One unit: nmem units u12
    [exit 0]

    $ nmem show --help
    Show one memory, session, work unit, prompt or tool use whole

    Usage: nmem show [OPTIONS] <ID>

    Arguments:
      <ID>  What to show

    Options:
          --json           Print one JSON object
          --project <DIR>  Look at the project of this folder instead of the current one
      -h, --help           Print help

    Example: nmem show m7

    Ids are those that search and context print: m7 a memory, s14 a session, u3 a work unit, p12 a
    prompt, t345 a tool use.
    A session is found by the beginning of the agent's own id too, a memory by that of its uuid.
    [exit 0]

    $ nmem status --help
    Show what is stored, what waits and what went wrong

    Usage: nmem status [OPTIONS]

    Options:
          --json           Print one JSON object
          --project <DIR>  Look at the project of this folder instead of the current one
      -h, --help           Print help

    Example: nmem status --json
    [exit 0]

    $ nmem patterns --help
    Show what recurs: the same failure, a file that is mended again and again, lessons of one tag

    Usage: nmem patterns [OPTIONS]

    Options:
          --limit <N>      Patterns to show; 0 for all [default: 10]
          --json           Print one JSON object a line
          --project <DIR>  Look at the project of this folder instead of the current one
      -h, --help           Print help

    Example: nmem patterns

    A pattern is what happened in three pieces of work or more. Errors are the same but for paths,
    numbers and quoted names.
    [exit 0]

    $ nmem install --help
    Hook nmem into an agent

    Usage: nmem install [OPTIONS] <PLATFORM>...

    Arguments:
      <PLATFORM>...  Agents to hook into [possible values: claude-code]

    Options:
          --scope <SCOPE>  The user's settings, or those of one project [default: user] [possible
                           values: user, project]
          --project <DIR>  The project, with --scope project [default: the current folder]
          --dry-run        Show what would change, and change nothing
      -h, --help           Print help

    Example: nmem install claude-code --dry-run

    Other hooks in the file stay as they are. A copy of the file is kept beside it; `nmem uninstall`
    undoes it byte for byte.
    [exit 0]

    $ nmem uninstall --help
    Take nmem's hooks out again; what was recorded stays

    Usage: nmem uninstall [OPTIONS] [PLATFORM]...

    Arguments:
      [PLATFORM]...  Agents to leave [default: all] [possible values: claude-code]

    Options:
          --scope <SCOPE>  The user's settings, or those of one project [default: user] [possible
                           values: user, project]
          --project <DIR>  The project, with --scope project [default: the current folder]
          --dry-run        Show what would change, and change nothing
      -h, --help           Print help

    Example: nmem uninstall

    The database stays; the command says where it is.
    [exit 0]

    $ nmem demo --help
    Play a recorded session through the real hooks, and show what is remembered

    Usage: nmem demo [OPTIONS]

    Options:
          --keep  Keep the folder and say where it is
      -h, --help  Print help

    Example: nmem demo

    Nothing of yours is touched: it runs in a temporary folder with a database of its own.
    [exit 0]

    $ nmem doctor --help
    Find out what is wrong, and mend what is safe to mend

    Usage: nmem doctor [OPTIONS]

    Options:
          --fix            Mend what is safe to mend: modes, indexes, the journal, what killed processes
                           left
          --json           Print one JSON object
          --project <DIR>  Look at the project of this folder instead of the current one
      -h, --help           Print help

    Example: nmem doctor --fix

    Exits with 1 while a problem remains.
    [exit 0]

    $ nmem remember --help
    Remember something by hand

    Usage: nmem remember [OPTIONS] [TEXT]...

    Arguments:
      [TEXT]...  What to remember

    Options:
          --kind <KIND>          observation, decision, lesson, task or summary
          --type <TYPE>          Type: of the domain for an observation; approach, technology,
                                 architecture; success, failure, optimization, warning
          --subtitle <TEXT>      One sentence of 24 words at most
          --narrative <TEXT>     The whole story
          --fact <TEXT>          One thing that is so; may be given again
          --concept <CONCEPT>    A concept of the domain; up to five
          --file <PATH>          A file that it is about
          --chosen <TEXT>        Of a decision: what was chosen
          --alternative <TEXT>   Of a decision: what it was chosen over
          --reason <TEXT>        Of a decision: why
          --confidence <NUMBER>  Of a decision: how sure, from 0 to 1
          --tag <TAG>            Of a lesson: a tag
          --pin                  Tell every session of it
          --stdin                Read one JSON object from stdin, with these names and any of your own
          --json                 Print the memory as JSON
          --project <DIR>        Look at the project of this folder instead of the current one
      -h, --help                 Print help

    Example: nmem remember "The staging database is rebuilt every Monday" --concept gotcha --pin
             nmem remember "SQLite for the cache" --kind decision --alternative Redis --reason "one
             file, no server" --confidence 0.8
             nmem remember "Run migrations before the tests" --kind lesson --type warning --tag tests
             echo '{"title": "…", "facts": ["…"]}' | nmem remember --stdin

    The first line is the title, the rest its text. Secrets are redacted as everywhere.
    [exit 0]

    $ nmem edit --help
    Mend a memory: change what it says

    Usage: nmem edit [OPTIONS] <ID>

    Arguments:
      <ID>  The memory

    Options:
          --title <TEXT>         Another title
          --type <TYPE>          Type: of the domain for an observation; approach, technology,
                                 architecture; success, failure, optimization, warning
          --subtitle <TEXT>      One sentence of 24 words at most
          --narrative <TEXT>     The whole story
          --fact <TEXT>          One thing that is so; may be given again
          --concept <CONCEPT>    A concept of the domain; up to five
          --file <PATH>          A file that it is about
          --chosen <TEXT>        Of a decision: what was chosen
          --alternative <TEXT>   Of a decision: what it was chosen over
          --reason <TEXT>        Of a decision: why
          --confidence <NUMBER>  Of a decision: how sure, from 0 to 1
          --tag <TAG>            Of a lesson: a tag
          --stdin                Read the fields to change from stdin, as one JSON object; null empties
                                 one
          --project <DIR>        Look at the project of this folder instead of the current one
      -h, --help                 Print help

    Example: nmem edit m7 --subtitle "since version 2 only"
             nmem edit m7

    Without fields it opens the memory as JSON in $VISUAL or $EDITOR. No rule and no model changes it
    afterwards.
    [exit 0]

    $ nmem pin --help
    Tell every session of a memory

    Usage: nmem pin [OPTIONS] <ID>

    Arguments:
      <ID>  The memory

    Options:
          --project <DIR>  Look at the project of this folder instead of the current one
      -h, --help           Print help

    Example: nmem pin m7
    [exit 0]

    $ nmem unpin --help
    No longer tell every session of a memory

    Usage: nmem unpin [OPTIONS] <ID>

    Arguments:
      <ID>  The memory

    Options:
          --project <DIR>  Look at the project of this folder instead of the current one
      -h, --help           Print help

    Example: nmem unpin m7
    [exit 0]

    $ nmem supersede --help
    Say that one memory no longer holds, and which one does instead

    Usage: nmem supersede [OPTIONS] <OLD> <NEW>

    Arguments:
      <OLD>  The memory that no longer holds
      <NEW>  The memory that holds instead

    Options:
          --project <DIR>  Look at the project of this folder instead of the current one
      -h, --help           Print help

    Example: nmem supersede m7 m31

    The old one is no longer recalled or found; `nmem show` still shows it.
    [exit 0]

    $ nmem forget --help
    Forget for good: by id, session, project, time or text

    Usage: nmem forget [OPTIONS] [ID]...

    Arguments:
      [ID]...  Memories, prompts, tool uses, units and sessions, by the ids that search and context
               print

    Options:
          --session <ID>     A whole session: s14, or the beginning of the agent's own id
          --project [<DIR>]  A whole project: this one, or that of a folder
          --before <TIME>    What came earlier: 2026-11-01, 90d
          --match <TEXT>     Whatever holds this text, in upper or lower case
          --dry-run          Only say what would go
          --yes              Do not ask
      -h, --help             Print help

    Example: nmem forget --match "project falcon" --dry-run
             nmem forget p12 t340
             nmem forget --project --before 90d

    What is said together narrows: --project --before 90d is what is old in this project. The text goes
    from the
    database, its indexes and its log, from waiting and rejected events, and from broken databases that
    were set aside.
    [exit 0]

    $ nmem export --help
    Write everything that is stored as JSON Lines: a copy to keep, or to take to another machine

    Usage: nmem export [OPTIONS] [FILE]

    Arguments:
      [FILE]  The file to write [default: stdout]

    Options:
          --project <DIR>  Only the project of this folder [default: everything]
          --force          Write over a file that is there
      -h, --help           Print help

    Example: nmem export memory.jsonl
             nmem export --project . | gzip > project.jsonl.gz

    A line is a row; memories are entities of the RAD protocol. Nobody else may read the file. Hooks go
    on beside it.
    [exit 0]

    $ nmem restore --help
    Read an export back: all of it or nothing

    Usage: nmem restore [OPTIONS] <FILE>

    Arguments:
      <FILE>  The file to read; - for stdin

    Options:
          --dry-run  Only say what would come of it
          --json     Print one JSON object
      -h, --help     Print help

    Example: nmem restore memory.jsonl
             gunzip -c project.jsonl.gz | nmem restore -

    What stands here already is left as it is: sessions by their agents' ids, memories by their uuids.
    Restore only what you
    exported yourself: memories in it are told to your agents. Hooks that come meanwhile wait in the
    spool.
    [exit 0]

    $ nmem distil --help
    Ask a model now about all that waits for one

    Usage: nmem distil [OPTIONS]

    Options:
          --session <ID>      Only this session: s14, or the beginning of the agent's own id
          --redo              Also what is already distilled, with today's provider; what you wrote,
                              changed or pinned stays
          --budget <SECONDS>  Begin nothing after so many seconds
          --json              Print one JSON object
          --project <DIR>     Look at the project of this folder instead of the current one
      -h, --help              Print help

    Example: nmem distil
             nmem distil --session s14 --redo
             nmem distil --budget 120

    The model is that of [llm] in the config file. It is asked at the end of turns, too; this asks at
    once, also while that pauses, and has the rules look first. Ctrl-C at any time: what was told is
    stored, the rest stays in the queue.
    [exit 0]

    $ nmem domain --help
    What kind of work a project is: list, show, set, check

    Usage: nmem domain <COMMAND>

    Commands:
      list   List the built-in domains, and which one this project has
      show   Show a domain: its types, concepts, fields and sections
      set    Give this project a domain: a built-in one by its name, or a file of your own
      check  Say what is wrong with a domain's file, with the lines
      help   Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help

    Example: nmem domain set emails
             nmem domain show coding --toml > cooking.toml
             nmem domain check cooking.toml && nmem domain set cooking.toml

    A domain says which types and concepts observations have, which fields of their own, and what a
    summary tells. The
    project's own domain counts, else the built-in one that its .nmem.toml names, else coding.
    [exit 0]

    $ nmem project --help
    Which folders are one project: list, rename, merge, split

    Usage: nmem project <COMMAND>

    Commands:
      list    List all projects, the one that was last at work first
      rename  Give the project another name
      merge   Make two projects one: what is known of FROM becomes part of INTO
      split   Make a folder a project of its own, with all below it and its sessions so far
      help    Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help

    Example: nmem project list
             nmem project merge old-name shop

    A project is the repository (by its remote, else its first commit, else its folder), or the folder
    without one.
    The config file's [[folder]] rules name projects too.
    [exit 0]

    $ nmem off --help
    Stop recording: everywhere, in a project, in a session; for good or for a while

    Usage: nmem off [OPTIONS] [TIME]

    Arguments:
      [TIME]  For how long: 30min, 1h, 2d [default: until `nmem on`]

    Options:
          --project [<DIR>]  Only this project, or that of a folder
          --session [<ID>]   Only this session: by id, or the one at work here
      -h, --help             Print help

    Example: nmem off 1h
             nmem off --project
             nmem off --session

    Hooks then do nothing: nothing is recorded and agents are given nothing. `nmem on` ends it.
    To keep out one turn, begin the prompt with #nomem.
    [exit 0]

    $ nmem on --help
    Go on recording

    Usage: nmem on [OPTIONS]

    Options:
          --project [<DIR>]  Only this project, or that of a folder
          --session [<ID>]   Only this session: by id, or the one at work here
      -h, --help             Print help

    Example: nmem on

    Ends what `nmem off` switched off here: everything, this project and its sessions. With --project or
    --session only that.
    [exit 0]

    $ nmem trust --help
    Show what a repository's .nmem.toml asks for, and let it

    Usage: nmem trust [OPTIONS]

    Options:
          --project <DIR>  Look at the project of this folder instead of the current one
          --yes            Do not ask
          --revoke         Trust it no longer
          --list           List what is trusted
      -h, --help           Print help

    Example: nmem trust

    By itself such a file can only switch recording off. What else it asks for (inject, context_bytes,
    prompt_bytes, file_bytes, ignore, redact, skip_tools, project, enabled = true) counts once it is
    trusted, until its content changes.
    The config file's [[folder]] rules go before it.
    [exit 0]

    $ nmem rad --help
    Answer one request of another program: JSON on stdin, JSON on stdout

    Usage: nmem rad [OPTIONS] [VERB]

    Arguments:
      [VERB]  What is asked

    Options:
          --batch  A request a line, an answer a line
      -h, --help   Print help

    Example: echo '{"agent_session_id": "a-1", "project": "my-app", "user_prompt": "Add a login"}' |
    nmem rad sessions/ensure

    Verbs: sessions/init, sessions/ensure, observations, sessions/summarize, sessions/complete, context,
    search, observation, session, entities, knowledge/record, knowledge/related, health. What is wrong
    with a request is said as
    {"error": {"code", "message"}}, with exit 1. With --batch each line is a request, and may name a
    verb of
    its own in "verb"; each answer is a line.
    [exit 0]
    "#);
}

#[test]
fn wrong_usage_exits_with_2_and_says_what_to_do() {
    let world = World::new();
    insta::assert_snapshot!(world.nmem(&["serch", "x"]).text(), @"
    --- stderr
    error: unrecognized subcommand 'serch'

      tip: a similar subcommand exists: 'search'

    Usage: nmem <COMMAND>

    For more information, try '--help'.
    [exit 2]
    ");
    insta::assert_snapshot!(world.nmem(&["search", "x", "--since", "soon"]).text(), @"
    --- stderr
    nmem: nothing is recorded of project yet; --all looks at all projects
    [exit 0]
    ");
    assert_eq!(world.nmem(&["search", "--limit", "many"]).code, Some(2));
    assert_eq!(world.nmem(&["record", "--no-such-flag"]).text(), "[exit 0]", "a hook never fails");
}
