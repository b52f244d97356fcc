//! Work cut among cores and streamed through buffers gives what one core gives.

use tenure_cipher::cluster::threads::{CopyEngine, Threads};
use tenure_cipher::cluster::{Cluster, Dma, OneCore, StreamError};
use tenure_cipher::{ChaCha8, ChaCha20, ChaCha20Legacy, KeystreamEnd};
use tenure_hal::simulated::Random;

fn cipher() -> ChaCha20 {
    ChaCha20::with_key(&[3; 32], &[4; 12])
}

#[test]
fn forked_work_equals_one_core_s_from_any_position() {
    let mut random = Random::new(1);
    for cores in [1, 2, 3, 8, 16, 1000] {
        let cluster = Threads::new(cores).unwrap();
        for _ in 0..30 {
            let len = random.length(13);
            let position = u128::from(random.below(1 << 30));
            let (mut ours, mut theirs) = (random.bytes(len), Vec::new());
            theirs.clone_from(&ours);
            let (mut many, mut one) = (cipher(), cipher());
            many.seek_to(position).unwrap();
            one.seek_to(position).unwrap();
            many.xor_on(&cluster, &mut ours).unwrap();
            one.xor(&mut theirs).unwrap();
            assert!(ours == theirs, "{cores} cores, {len} bytes at {position}");
            assert_eq!(many.position(), one.position());
        }
    }
}

#[test]
fn forked_work_passes_the_counter_s_wrap() {
    let position = (1u128 << 38) - 1000;
    let stream = || {
        let mut stream = ChaCha20Legacy::with_key(&[1; 32], &[2; 8]);
        stream.seek_to(position).unwrap();
        stream
    };
    let (mut ours, mut theirs) = (vec![0; 5000], vec![0; 5000]);
    stream().xor_on(&Threads::new(5).unwrap(), &mut ours).unwrap();
    stream().xor(&mut theirs).unwrap();
    assert!(ours == theirs);
}

#[test]
fn forked_work_past_the_end_is_refused_untouched() {
    let mut stream = cipher();
    stream.seek_to((1 << 38) - 64).unwrap();
    let mut data = [7; 65];
    assert_eq!(stream.xor_on(&Threads::new(2).unwrap(), &mut data), Err(KeystreamEnd));
    assert_eq!(data, [7; 65]);
}

#[test]
fn fork_within_a_fork_and_beside_another_does_its_work_alone() {
    let cluster = Threads::new(4).unwrap();
    let mut outer = [0u32; 4];
    cluster.fork(&mut outer, |outer| {
        let mut inner = [1u32; 40];
        cluster.fork(&mut inner, |inner| *inner += 1);
        *outer = inner.iter().sum();
    });
    assert_eq!(outer, [80; 4]);
}

/// A thread may panic; the fork returns only when no thread uses its parts, and the cluster still works.
#[test]
fn panic_on_any_core_reaches_the_caller_and_leaves_the_cluster_whole() {
    let cluster = Threads::new(4).unwrap();
    for culprit in 0..4 {
        let mut parts = [0, 1, 2, 3];
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            cluster.fork(&mut parts, |part| {
                assert!(*part != culprit, "this panic is the test's");
                *part += 10;
            });
        }));
        assert!(unwound.is_err(), "core {culprit}");
        let mut parts = [0; 16];
        cluster.fork(&mut parts, |part| *part += 1);
        assert_eq!(parts, [1; 16]);
    }
}

/// A fork that fails must not leave the stream where its keystream would come a second time.
#[test]
fn keystream_of_a_fork_that_panicked_is_spent() {
    struct Broken;
    impl Cluster for Broken {
        fn cores(&self) -> usize {
            2
        }
        fn fork<T: Send>(&self, _: &mut [T], _: impl Fn(&mut T) + Sync) {
            panic!("this panic is the test's");
        }
    }
    let mut stream = cipher();
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        stream.xor_on(&Broken, &mut [0; 128])
    }));
    assert!(unwound.is_err());
    assert_eq!(stream.position(), 128);
}

fn check_streamed(cluster: &impl Cluster, dma: &mut impl Dma, len: usize, size: usize) {
    let mut random = Random::new(len as u64);
    let from = random.bytes(len);
    let mut to = vec![0; len];
    // Rubbish in the buffers must not come out.
    let mut buffers = [0xee, 0xdd, 0xcc].map(|byte| vec![byte; size]);
    let [a, b, c] = &mut buffers;
    cipher().stream_on(cluster, dma, &from, &mut to, [a, b, c]).unwrap();
    let mut expected = from.clone();
    cipher().xor(&mut expected).unwrap();
    assert!(to == expected, "{len} bytes through buffers of {size}");
}

/// One, two, three and more buffers full, whole and with a rest.
#[test]
fn streamed_work_equals_one_core_s_at_every_length() {
    let (threads, mut engine) = (Threads::new(3).unwrap(), CopyEngine::new().unwrap());
    for size in [64, 256] {
        for len in (0..40).map(|i| i * 31).chain([64, 128, 192, 256, 512, 768, 1024, 1025]) {
            check_streamed(&OneCore, &mut OneCore, len, size);
            check_streamed(&threads, &mut engine, len, size);
        }
    }
}

#[test]
fn streaming_refuses_what_cannot_work() {
    let stream = |from: &[u8], to: &mut [u8], sizes: [usize; 3]| {
        let mut buffers = sizes.map(|size| vec![0; size]);
        let [a, b, c] = &mut buffers;
        cipher().stream_on(&OneCore, &mut OneCore, from, to, [a, b, c])
    };
    assert_eq!(stream(&[0; 9], &mut [0; 8], [64; 3]), Err(StreamError::LengthsDiffer));
    assert_eq!(stream(&[0; 9], &mut [0; 9], [64, 64, 128]), Err(StreamError::Buffers));
    assert_eq!(stream(&[0; 9], &mut [0; 9], [63; 3]), Err(StreamError::Buffers));
    assert_eq!(stream(&[0; 9], &mut [0; 9], [0; 3]), Err(StreamError::Buffers));
    let mut late = ChaCha8::with_key(&[0; 32], &[0; 12]);
    late.seek_to((1 << 38) - 8).unwrap();
    let (mut a, mut b, mut c) = ([0; 64], [0; 64], [0; 64]);
    let buffers: [&mut [u8]; 3] = [&mut a, &mut b, &mut c];
    let refused = late.stream_on(&OneCore, &mut OneCore, &[0; 9], &mut [0; 9], buffers);
    assert_eq!(refused, Err(StreamError::TooLong));
}
