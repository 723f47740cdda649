//! Use case: shared memory. Files: `people` (identity of this machine and others), `outgoing`, `incoming` (changes,
//! and rows of programs), `shared_folder` and `server` (the two transports), `sync` (the whole exchange).

pub mod incoming;
mod outgoing;
pub mod people;
mod server;
mod shared_folder;
mod sync;

pub use sync::{SyncPlace, SyncResult, SyncTarget, due, sync};

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::knowledge;
    use crate::model::{Draft, Millis, ProjectId, Provenance, Share, SharedChange};
    use crate::redact::Redactor;
    use crate::store::Store;
    use crate::store::deletion::DeleteFilter;
    use crate::store::testing::Scratch;
    use crate::team::sync::{SyncPlace, SyncTarget, sync};
    use proptest::prelude::*;
    use serde_json::json;
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// 2026-11-24; the clocks of the machines are an hour apart.
    const NOW: Millis = 1_795_500_000_000;

    const HOUR: Millis = 3_600_000;

    /// An action of a person on the n-th memory that they see.
    #[derive(Clone, Debug)]
    enum Step {
        Create(u8),
        Edit(usize, u8),
        Pin(usize),
        Supersede(usize, usize),
        Private(usize),
        Forget(usize),
        Sync,
    }

    fn step() -> impl Strategy<Value = (usize, Step)> {
        let step = prop_oneof![
            3 => any::<u8>().prop_map(Step::Create),
            4 => (0..9usize, any::<u8>()).prop_map(|(n, word)| Step::Edit(n, word)),
            1 => (0..9usize).prop_map(Step::Pin),
            2 => (0..9usize, 0..9usize).prop_map(|(old, new)| Step::Supersede(old, new)),
            1 => (0..9usize).prop_map(Step::Private),
            1 => (0..9usize).prop_map(Step::Forget),
            4 => Just(Step::Sync),
        ];
        (0..3usize, step)
    }

    struct Peer {
        scratch: Scratch,
        store: Store,
        config: Config,
        redactor: Redactor,
        project: i64,
        now: Millis,
        folder: PathBuf,
    }

    impl Peer {
        fn new(case: u32, at: usize, name: &str, share: Share, folder: &std::path::Path) -> Peer {
            let scratch = Scratch::new(&format!("peer-{case}-{at}"));
            let mut store = scratch.open();
            let mut config = Config::without_files(scratch.files(), &scratch.0);
            config.team.name.value = Some(name.to_string());
            let redactor = Redactor::default();
            let id = ProjectId { keys: vec!["repo:example.org/app".into()], name: "app".into(), ..ProjectId::default() };
            let project = store.ensure_project(&redactor.clean(id), NOW).unwrap();
            store.set_share(project, Some(share)).unwrap();
            let now = NOW + at as Millis * HOUR;
            Peer { scratch, store, config, redactor, project, now, folder: folder.to_path_buf() }
        }

        fn take(&mut self, step: &Step) {
            self.now += 1000;
            let all = self.store.all_memories(None, 1000).unwrap().0;
            let pick = |n: &usize| all.get(n % all.len().max(1)).cloned();
            let redactor = &self.redactor;
            match step {
                Step::Create(word) => {
                    let fields = json!({"title": format!("memory {word}"), "kind": "decision"});
                    let domain = crate::domains::built_in("coding").unwrap();
                    let draft = knowledge::draft(fields.as_object().unwrap(), &domain, self.now).unwrap();
                    let draft = Draft { provenance: Provenance::User, ..draft };
                    knowledge::remember(&mut self.store, redactor, draft, Some(self.project), false).unwrap();
                }
                Step::Edit(n, word) => {
                    let Some(memory) = pick(n) else { return };
                    let changes = json!({"title": format!("edited {word}")}).as_object().unwrap().clone();
                    knowledge::edit(&mut self.store, redactor, &memory, changes, Provenance::User).unwrap();
                }
                Step::Pin(n) => {
                    // Refused for what others wrote, and for what is superseded.
                    let _ = pick(n).map(|memory| knowledge::pin(&mut self.store, &memory, true));
                }
                Step::Supersede(old, new) => {
                    // Refused where it would be a cycle.
                    let _ = pick(old).zip(pick(new)).map(|(old, new)| knowledge::supersede(&mut self.store, &old, &new));
                }
                Step::Private(n) => {
                    let Some(memory) = pick(n).filter(|memory| !memory.is_of_team()) else { return };
                    self.store.set_private(&memory.uuid, true).unwrap();
                }
                Step::Forget(n) => {
                    let Some(memory) = pick(n) else { return };
                    let wanted = DeleteFilter { memories: vec![memory.id], ..DeleteFilter::default() };
                    let going = self.store.what_would_go(&wanted).unwrap();
                    self.store.forget(&going, None, &|_, _, _| Vec::new(), &|_, _| Ok(())).unwrap();
                }
                Step::Sync => self.sync(),
            }
        }

        fn sync(&mut self) {
            let target = SyncTarget { place: SyncPlace::Folder(self.folder.clone()), is_in_hook: false };
            sync(&mut self.store, &self.config, &self.redactor, &target, self.now, &mut |_| ()).unwrap();
        }

        /// Returns the shared memories by uuid: title and successor; for one person's machines also whether it is pinned.
        fn shared(&self, with_pins: bool) -> BTreeMap<String, SharedView> {
            let all = self.store.all_memories(None, 1000).unwrap().0;
            let uuids: BTreeMap<i64, String> = all.iter().map(|memory| (memory.id, memory.uuid.clone())).collect();
            let is_public = |uuid: &String| with_pins || !self.store.is_private(uuid).unwrap();
            let public = all.into_iter().filter(|memory| is_public(&memory.uuid));
            let state = |memory: crate::model::MemoryRow| {
                let successor = memory.superseded_by.map(|id| uuids[&id].clone());
                let successor = successor.map(|uuid| is_public(&uuid).then_some(uuid));
                (memory.uuid, SharedView { title: memory.title, successor, pinned: with_pins && memory.pinned })
            };
            public.map(state).collect()
        }
    }

    /// A shared memory on one machine.
    #[derive(Clone, Debug)]
    struct SharedView {
        title: String,
        /// The uuid is `None` for a private memory, which others cannot know.
        successor: Option<Option<String>>,
        pinned: bool,
    }

    impl PartialEq for SharedView {
        fn eq(&self, other: &SharedView) -> bool {
            let is_private = |view: &SharedView| view.successor == Some(None);
            let is_alike = self.successor == other.successor || is_private(self) || is_private(other);
            self.title == other.title && self.pinned == other.pinned && is_alike
        }
    }

    fn in_the_end_all_are_alike(steps: &[(usize, Step)], names: [&str; 3], share: Share) -> Result<(), TestCaseError> {
        static CASE: AtomicU32 = AtomicU32::new(0);
        let case = CASE.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("nmem-histories-{}-{case}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let is_one_person = share == Share::Mine;
        let mut peers: Vec<Peer> = (0..3).map(|at| Peer::new(case, at, names[at], share, &folder)).collect();
        // They get to know each other.
        for (at, peer) in peers.iter_mut().enumerate() {
            peer.take(&Step::Create(at as u8));
            peer.sync();
        }
        for peer in &mut peers {
            peer.sync();
            for machine in peer.store.machines().unwrap().into_iter().filter(|_| is_one_person) {
                peer.store.set_trusted(machine.id, true).unwrap();
            }
        }
        for (at, step) in steps {
            peers[*at].take(step);
        }
        for _ in 0..4 {
            peers.iter_mut().for_each(Peer::sync);
        }
        let states: Vec<_> = peers.iter().map(|peer| peer.shared(is_one_person)).collect();
        prop_assert_eq!(&states[0], &states[1]);
        prop_assert_eq!(&states[1], &states[2]);
        // And nothing is left to do.
        for peer in &mut peers {
            let target = SyncTarget { place: SyncPlace::Folder(folder.clone()), is_in_hook: false };
            let again = sync(&mut peer.store, &peer.config, &peer.redactor, &target, peer.now, &mut |_| ()).unwrap();
            prop_assert_eq!((again.sent, again.received.new, again.received.changed, again.folder.chunks), (0, 0, 0, 0));
            prop_assert!(peer.scratch.0.exists());
        }
        let _ = std::fs::remove_dir_all(folder);
        Ok(())
    }

    /// A history that random tests found: what Carol edits arrives at Bob, who keeps his own version apart, while that one
    /// supersedes another memory that all three have. Uuids decide how it goes on, so it is run several times.
    #[test]
    fn what_a_kept_version_superseded_ends_alike() {
        use Step::{Create, Edit, Forget, Private, Supersede, Sync};
        let steps = [
            (1, Create(180)),
            (2, Sync),
            (0, Forget(3)),
            (0, Edit(7, 162)),
            (0, Create(195)),
            (0, Edit(4, 47)),
            (2, Supersede(7, 0)),
            (2, Edit(5, 77)),
            (2, Supersede(8, 7)),
            (1, Create(40)),
            (2, Sync),
            (0, Create(162)),
            (2, Sync),
            (1, Edit(8, 197)),
            (0, Create(153)),
            (0, Forget(6)),
            (0, Edit(1, 112)),
            (0, Edit(6, 101)),
            (2, Private(7)),
            (0, Sync),
            (0, Sync),
            (1, Sync),
            (0, Sync),
            (0, Edit(1, 96)),
            (1, Supersede(0, 8)),
            (0, Edit(3, 223)),
            (1, Supersede(0, 6)),
            (2, Edit(0, 42)),
            (0, Edit(5, 217)),
            (2, Edit(7, 48)),
            (1, Sync),
            (0, Sync),
            (0, Private(6)),
        ];
        for _ in 0..12 {
            in_the_end_all_are_alike(&steps, ["anna", "bob", "carol"], Share::Team).unwrap();
        }
    }

    /// Another one: a memory that Bob keeps as private closes a cycle on his machine that nobody else has.
    #[test]
    fn a_cycle_through_a_private_memory_ends_alike() {
        use Step::{Create, Edit, Forget, Supersede, Sync};
        let steps = [
            (2, Supersede(4, 5)),
            (0, Supersede(0, 6)),
            (1, Edit(5, 181)),
            (1, Supersede(8, 4)),
            (1, Supersede(4, 3)),
            (2, Supersede(3, 7)),
            (2, Step::Pin(3)),
            (0, Edit(6, 116)),
            (2, Sync),
            (2, Create(209)),
            (2, Edit(6, 166)),
            (2, Supersede(0, 3)),
            (0, Edit(3, 36)),
            (1, Create(149)),
            (2, Sync),
            (2, Sync),
            (2, Sync),
            (2, Forget(4)),
            (1, Create(198)),
            (2, Edit(2, 103)),
            (1, Sync),
            (0, Sync),
            (2, Edit(8, 112)),
            (0, Edit(6, 108)),
            (2, Sync),
        ];
        for _ in 0..30 {
            in_the_end_all_are_alike(&steps, ["anna", "bob", "carol"], Share::Team).unwrap();
        }
    }

    /// One person's machines all have a private memory, but only one knows that it is private.
    #[test]
    fn a_cycle_through_a_private_memory_ends_alike_on_one_persons_machines() {
        use Step::*;
        let steps = [
            (0, Create(14)),
            (0, Create(223)),
            (0, Edit(3, 217)),
            (2, Supersede(4, 2)),
            (0, Edit(5, 227)),
            (0, Sync),
            (1, Create(12)),
            (0, Private(4)),
            (1, Sync),
            (2, Edit(5, 96)),
            (2, Edit(5, 52)),
            (0, Edit(0, 195)),
            (1, Supersede(5, 2)),
            (2, Pin(6)),
            (2, Edit(1, 180)),
            (1, Edit(6, 37)),
            (2, Edit(5, 202)),
            (2, Pin(3)),
            (2, Create(148)),
        ];
        for _ in 0..30 {
            in_the_end_all_are_alike(&steps, ["anna"; 3], Share::Mine).unwrap();
        }
    }

    /// A change that a hostile member sends about one of Anna's memories.
    #[derive(Clone, Debug)]
    struct Forged {
        memory: usize,
        counter: i64,
        gone: bool,
        withdrawn: bool,
        /// It repeats the memory, but for what the others say.
        repeats: bool,
        supersedes: bool,
        pinned: bool,
    }

    fn forged() -> impl Strategy<Value = Forged> {
        let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
        (0..6usize, 1..1000i64, flags).prop_map(|(memory, counter, (gone, withdrawn, repeats, supersedes, pinned))| Forged {
            memory,
            counter,
            gone,
            withdrawn,
            repeats,
            supersedes,
            pinned,
        })
    }

    /// Anna's own memories, with whether each is private.
    fn own(anna: &Peer) -> Vec<(crate::model::MemoryRow, bool)> {
        let mut all = anna.store.all_memories(None, 1000).unwrap().0;
        all.retain(|memory| !memory.is_of_team());
        all.sort_by_key(|memory| memory.id);
        all.into_iter().map(|memory| (anna.store.is_private(&memory.uuid).unwrap(), memory)).map(|(p, m)| (m, p)).collect()
    }

    fn an_own_memory_never_changes_by_a_stranger(history: &[Vec<Forged>]) -> Result<(), TestCaseError> {
        static CASE: AtomicU32 = AtomicU32::new(100_000);
        let case = CASE.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("nmem-hostile-{}-{case}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut anna = Peer::new(case, 0, "anna", Share::Team, &folder);
        (0..6).for_each(|word| anna.take(&Step::Create(word)));
        anna.sync();
        [Step::Pin(0), Step::Private(1), Step::Supersede(3, 2)].iter().for_each(|step| anna.take(step));
        anna.sync();
        let before = own(&anna);
        let signer = super::people::Signer::new(&"07".repeat(32)).unwrap();
        let mallory = folder.join(&signer.key()[..16]);
        std::fs::create_dir_all(&mallory).unwrap();
        let mut seq = 0;
        for sent in history {
            let changes = sent.iter().map(|forged| {
                seq += 1;
                let target = &before[forged.memory % before.len()].0;
                let title = if forged.repeats { target.title.clone() } else { format!("forged {seq}") };
                let author = "hand";
                let superseded_by = forged.supersedes.then(|| before[(forged.memory + 1) % before.len()].0.uuid.clone());
                let body = json!({"kind": "decision", "title": title, "content": {"chosen": title}, "created_at": target.created_at,
                    "made_by": "hand", "author": author, "pinned": forged.pinned, "superseded_by": superseded_by});
                let body = (!forged.gone).then(|| body.to_string());
                let mut change = SharedChange {
                    machine: signer.key(),
                    seq,
                    uuid: target.uuid.clone(),
                    counter: forged.counter,
                    gone: forged.gone,
                    withdrawn: forged.withdrawn,
                    projects: vec!["repo:example.org/app".into()],
                    name: "anna".into(),
                    digest: body.as_deref().map(super::people::digest).unwrap_or_default(),
                    signature: String::new(),
                    body,
                };
                signer.sign(&mut change);
                change
            });
            let changes: Vec<SharedChange> = changes.collect();
            if let (Some(first), Some(last)) = (changes.first(), changes.last()) {
                super::shared_folder::write(&mallory, (first.seq, last.seq), changes.len(), &changes, false).unwrap();
            }
            anna.sync();
            // What he claims gets another uuid here, so all but that stays.
            let now = own(&anna);
            prop_assert_eq!(now.len(), before.len());
            for ((now, is_private), (before, was_private)) in now.iter().zip(&before) {
                let mut now = now.clone();
                now.uuid.clone_from(&before.uuid);
                prop_assert_eq!(&now, before);
                prop_assert!(*is_private || !was_private);
            }
        }
        let _ = std::fs::remove_dir_all(folder);
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, max_shrink_iters: 200, ..ProptestConfig::default() })]

        #[test]
        fn three_machines_of_one_person_end_alike(steps in prop::collection::vec(step(), 1..40)) {
            in_the_end_all_are_alike(&steps, ["anna"; 3], Share::Mine)?;
        }

        #[test]
        fn own_memories_stay_as_they_are_in_hostile_histories(history in prop::collection::vec(prop::collection::vec(forged(), 0..5), 1..5)) {
            an_own_memory_never_changes_by_a_stranger(&history)?;
        }

        #[test]
        fn what_three_people_share_ends_alike(steps in prop::collection::vec(step(), 1..40)) {
            in_the_end_all_are_alike(&steps, ["anna", "bob", "carol"], Share::Team)?;
        }
    }
}
