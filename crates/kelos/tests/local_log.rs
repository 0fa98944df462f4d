//! The output of local commands, live and within its limit.

mod local_support;

use kelos_executors::local::LogChunk;

use local_support::{Fixture, code, until};

const LIMIT: u64 = 64 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn output_is_there_while_the_command_runs() {
    let fixture = Fixture::new();
    let spec = fixture.script("echo one; while [ ! -e go ]; do sleep 0.01; done; echo two");
    fixture.launcher.start(&spec).await.unwrap();
    until("the first line", || fixture.log(&spec.run) == "one\n");
    let first = fixture.launcher.read_log(&spec.run, 0, 100).await.unwrap();
    assert!(!first.ended);
    std::fs::write(fixture.work("go"), "").unwrap();
    fixture.launcher.wait(&spec.run).await.unwrap();
    let second = fixture.launcher.read_log(&spec.run, first.next_offset, 100).await.unwrap();
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
        let chunk = fixture.launcher.read_log(&spec.run, offset, 1000).await.unwrap();
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
    assert_eq!(fixture.launcher.log_len(&spec.run).await.unwrap(), all.len() as u64);
    assert!((LIMIT * 3 / 4..=LIMIT).contains(&kept), "{kept} bytes kept");
    let on_disk: u64 = std::fs::read_dir(fixture.launcher.dirs().path(&spec.run))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("log"))
        .map(|entry| entry.metadata().unwrap().len())
        .sum();
    assert_eq!(on_disk, kept);
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
        let chunk = fixture.launcher.read_log(&spec.run, offset, 5000).await.unwrap();
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
