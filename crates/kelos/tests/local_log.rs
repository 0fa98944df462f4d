//! The output of local commands, live and within its limit.

use kelos_executors::local::{LogChunk, LogLine, RunRef, Stream};

use crate::local_support::{Fixture, code, until};

const LIMIT: u64 = 64 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn output_is_there_while_the_command_runs() {
    let fixture = Fixture::new();
    let spec = fixture.script("echo one; while [ ! -e go ]; do sleep 0.01; done; echo two");
    fixture.launcher.start(&spec).await.unwrap();
    until("the first line", || fixture.log(&spec.run) == "one\n");
    let first = fixture.launcher.output(&spec.run).piece(0, 100).await.unwrap();
    assert!(!first.ended);
    std::fs::write(fixture.work("go"), "").unwrap();
    fixture.launcher.wait(&spec.run).await.unwrap();
    let second = fixture.launcher.output(&spec.run).piece(first.next_offset, 100).await.unwrap();
    let expected = LogChunk { offset: 4, bytes: b"two\n".to_vec(), next_offset: 8, dropped: 0, ended: true };
    assert_eq!(second, expected);
}

#[tokio::test]
async fn a_long_output_keeps_its_head_and_its_tail() {
    let fixture = Fixture::new();
    let mut spec = fixture.script("seq 1 300000; echo the end >&2");
    spec.log_limit_bytes = Some(LIMIT);
    assert_eq!(fixture.run(&spec).await.outcome, code(0));
    let mut all: String = (1..=300_000).map(|i| format!("{i}\n")).collect();
    all.push_str("the end\n");
    let (mut offset, mut kept, mut gaps) = (0, 0, 0);
    loop {
        let chunk = fixture.launcher.output(&spec.run).piece(offset, 1000).await.unwrap();
        let (from, to) = (usize::try_from(chunk.offset).unwrap(), usize::try_from(chunk.next_offset).unwrap());
        assert_eq!(chunk.bytes, all.as_bytes()[from..to], "offsets are those of the whole output");
        kept += chunk.bytes.len() as u64;
        gaps += u64::from(chunk.dropped > 0);
        offset = chunk.next_offset;
        if chunk.ended {
            break;
        }
    }
    assert_eq!((offset, gaps), (all.len() as u64, 1));
    assert_eq!(fixture.launcher.output(&spec.run).length().await.unwrap(), all.len() as u64);
    assert!((LIMIT * 3 / 4..=LIMIT).contains(&kept), "{kept} bytes kept");
    let (marks, bytes): (Vec<_>, Vec<_>) = std::fs::read_dir(fixture.launcher.dirs().path(&spec.run))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len()))
        .filter(|(name, _)| name.starts_with("log"))
        .partition(|(name, _)| name.ends_with(".marks"));
    let size = |files: &[(String, u64)]| files.iter().map(|(_, size)| size).sum::<u64>();
    assert_eq!((size(&bytes), marks.len()), (kept, bytes.len()), "each file has its marks, and none is left over");
    assert!(size(&marks) < LIMIT / 4);
}

/// A reader that follows an output faster than it reads sees every gap and never a wrong byte.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_keeps_its_place_while_segments_disappear() {
    let fixture = Fixture::new();
    let mut spec = fixture.script("i=0; while [ $i -lt 60 ]; do seq 100000 109999; i=$((i+1)); done");
    spec.log_limit_bytes = Some(LIMIT);
    fixture.launcher.start(&spec).await.unwrap();
    let block: String = (100_000..110_000).map(|i| format!("{i}\n")).collect();
    let (mut offset, mut seen) = (0, 0);
    loop {
        let chunk = fixture.launcher.output(&spec.run).piece(offset, 5000).await.unwrap();
        for (position, byte) in (chunk.offset..).zip(&chunk.bytes) {
            let place = usize::try_from(position).unwrap() % block.len();
            assert_eq!(*byte, block.as_bytes()[place], "at {position}");
        }
        assert_eq!(chunk.offset, offset + chunk.dropped);
        seen += chunk.dropped + chunk.bytes.len() as u64;
        offset = chunk.next_offset;
        if chunk.ended {
            break;
        }
    }
    assert_eq!(seen, 60 * block.len() as u64);
}

impl Fixture {
    /// The output of a run as lines: stream, text.
    async fn lines(&self, run: &RunRef) -> Vec<(Stream, String)> {
        let read = self.launcher.output(run).lines(0, 1 << 20).await.unwrap();
        let line = |line: LogLine| (line.stream.unwrap(), String::from_utf8(line.bytes).unwrap());
        read.lines.into_iter().map(line).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_know_their_streams_and_when_they_came() {
    let fixture = Fixture::new();
    let spec = fixture.script("echo one; while [ ! -e go ]; do sleep 0.01; done; echo two >&2; printf three >&2");
    fixture.launcher.start(&spec).await.unwrap();
    until("the first line", || fixture.log(&spec.run) == "one\n");
    let first = fixture.launcher.output(&spec.run).lines(0, 1000).await.unwrap();
    let between = jiff::Timestamp::now();
    std::fs::write(fixture.work("go"), "").unwrap();
    fixture.launcher.wait(&spec.run).await.unwrap();
    let expected = [(Stream::Stdout, "one"), (Stream::Stderr, "two"), (Stream::Stderr, "three")];
    assert_eq!(fixture.lines(&spec.run).await, expected.map(|(stream, text)| (stream, text.to_owned())));
    let rest = fixture.launcher.output(&spec.run).lines(first.next_offset, 1000).await.unwrap();
    assert!(first.lines[0].at.unwrap() <= between, "the first one came before");
    // Times are kept to the millisecond.
    assert!(rest.lines[0].at.unwrap().as_millisecond() >= between.as_millisecond());
    assert!(rest.ended);
    assert_eq!(fixture.log(&spec.run), "one\ntwo\nthree", "bytes are as they were written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_closed_or_held_open_holds_nothing_up() {
    let fixture = Fixture::new();
    // It closes one, goes on writing to the other, and leaves a process behind that holds that one for longer than a test.
    let spec = fixture.script("exec >&-; echo late >&2; setsid sleep 300 & exit 0");
    assert_eq!(fixture.run(&spec).await.outcome, code(0));
    let note = "kelos: the command has ended and left a process in the background, which Kelos ends";
    let lines = [(Stream::Stderr, "late".to_owned()), (Stream::Kelos, note.to_owned())];
    assert_eq!(fixture.lines(&spec.run).await, lines);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_kelos_adds_is_told_apart() {
    let fixture = Fixture::new();
    let spec = fixture.script("echo mine; echo '[]' > $KELOS_OUTPUTS");
    fixture.run(&spec).await;
    let lines = fixture.lines(&spec.run).await;
    assert_eq!(lines[0], (Stream::Stdout, "mine".to_owned()));
    assert_eq!(lines[1].0, Stream::Kelos);
}
