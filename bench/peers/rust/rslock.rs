//! rslock.rs - the worker for rslock on tokio, with its defaults (3 tries, random pauses of up to 200 ms, and then an error). The
//! protocol that run.py speaks with every worker is in ../README.md.

use rslock::{Lock, LockManager};
use std::io::BufRead;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;

const TTL: Duration = Duration::from_secs(10);

struct Run {
    at: SystemTime,
    begin: Instant,
    end: Instant,
    cpu_us: i64,
    taken: Mutex<(Vec<u64>, usize, String)>, // microseconds, errors, the last error
}

fn cpu_us() -> i64 {
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    let us = |t: libc::timeval| t.tv_sec * 1_000_000 + t.tv_usec;
    us(usage.ru_utime) + us(usage.ru_stime)
}

fn clean(text: String) -> String {
    text.chars().filter(|c| (' '..='~').contains(c) && *c != '"' && *c != '\\').take(200).collect()
}

impl Run {
    fn new(ms: u64) -> Arc<Run> {
        let begin = Instant::now();
        Arc::new(Run { at: SystemTime::now(), begin, end: begin + Duration::from_millis(ms), cpu_us: cpu_us(), taken: Mutex::default() })
    }

    fn over(&self) -> bool {
        Instant::now() >= self.end
    }

    fn add(&self, time: Duration) {
        self.taken.lock().unwrap().0.push(time.as_micros() as u64);
    }

    fn fail(&self, error: String) {
        let mut taken = self.taken.lock().unwrap();
        taken.1 += 1;
        taken.2 = clean(error);
    }

    fn print(&self) {
        let (us, cpu) = (self.begin.elapsed().as_micros(), cpu_us() - self.cpu_us);
        let mut taken = self.taken.lock().unwrap();
        taken.0.sort();
        let n = taken.0.len();
        let at = self.at.duration_since(UNIX_EPOCH).unwrap().as_micros();
        let mut line = format!("{{\"count\": {n}, \"at_us\": {at}, \"us\": {us}, \"cpu_us\": {cpu}");
        if n > 0 {
            let at = |part: usize| taken.0[n * part / 100];
            line += &format!(", \"p50\": {}, \"p90\": {}, \"p99\": {}", at(50), at(90), at(99));
        }
        if taken.1 > 0 {
            line += &format!(", \"errors\": {}, \"last_error\": \"{}\"", taken.1, taken.2);
        }
        println!("{line}}}");
    }
}

async fn cycles(manager: LockManager, key: String, run: Arc<Run>) {
    while !run.over() {
        let start = Instant::now();
        match manager.lock(key.as_str(), TTL).await {
            Ok(lock) => {
                lock.release().await;
                run.add(start.elapsed());
            }
            Err(error) => run.fail(error.to_string()),
        }
    }
}

/// Who held the lock last, and when the release of it began. Who has had it stands back until another has it, and then for a random
/// time of up to half a round, so that those who poll at fixed intervals do not fall into step.
#[derive(Default)]
struct Contest {
    members: u32,
    state: Mutex<(Option<usize>, Option<Instant>)>,
    changed: Notify,
}

async fn waiter(contest: Arc<Contest>, number: usize, manager: LockManager, run: Arc<Run>, hold: Duration) {
    while !run.over() {
        let change = contest.changed.notified();
        if contest.state.lock().unwrap().0 == Some(number) {
            let _ = tokio::time::timeout_at(run.end.into(), change).await;
            continue;
        }
        tokio::time::sleep(hold.mul_f64(rand::random::<f64>() * f64::from(contest.members - 1) / 2.0)).await;
        let lock = match manager.lock("rslock-contend", TTL).await {
            Ok(lock) => lock,
            Err(error) => {
                if !run.over() {
                    run.fail(error.to_string());
                }
                continue;
            }
        };
        {
            let mut state = contest.state.lock().unwrap();
            if let (Some(released), false) = (state.1, run.over()) {
                run.add(released.elapsed());
            }
            state.0 = Some(number);
        }
        contest.changed.notify_waiters();
        if !run.over() {
            tokio::time::sleep(hold).await;
        }
        contest.state.lock().unwrap().1 = Some(Instant::now());
        lock.release().await;
    }
}

async fn together(tasks: Vec<tokio::task::JoinHandle<()>>) {
    for task in tasks {
        task.await.unwrap();
    }
}

/// `lock` gives up after its tries; asked again until the time is over.
async fn take(manager: &LockManager, key: &str, ttl: Duration, wait: Duration) -> Result<Lock, String> {
    let end = Instant::now() + wait;
    loop {
        match manager.lock(key, ttl).await {
            Ok(lock) => return Ok(lock),
            Err(error) if Instant::now() >= end => return Err(clean(error.to_string())),
            Err(_) => continue,
        }
    }
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let urls: Vec<String> = arguments[2].split(',').map(str::to_string).collect();
    let own = LockManager::new(urls.clone());
    let mut held: Option<Lock> = None;
    let mut managers = Vec::new(); // of waiters, as in processes of their own; kept for the next contention
    println!("{{\"ready\": true}}");
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let n: Vec<u64> = words.iter().map(|word| word.parse().unwrap_or(0)).collect();
        match words[0] {
            "cycle" => {
                let run = Run::new(n[1]);
                cycles(own.clone(), "rslock-cycle".into(), run.clone()).await;
                run.print();
            }
            "many" => {
                let run = Run::new(n[2]);
                let task = |i| tokio::spawn(cycles(own.clone(), format!("rslock-many-{i}"), run.clone()));
                together((0..n[1]).map(task).collect()).await;
                run.print();
            }
            "contend" => {
                while managers.len() < n[1] as usize {
                    managers.push(LockManager::new(urls.clone()));
                }
                let (run, contest) = (Run::new(n[2]), Arc::new(Contest { members: n[1] as u32, ..Contest::default() }));
                let hold = Duration::from_micros(n[3]);
                let task = |(i, m)| tokio::spawn(waiter(contest.clone(), i, m, run.clone(), hold));
                together(managers.iter().cloned().take(n[1] as usize).enumerate().map(task).collect()).await;
                run.print();
            }
            "take" => match take(&own, words[1], Duration::from_millis(n[2]), Duration::from_millis(n[3])).await {
                Ok(lock) => {
                    held = Some(lock);
                    println!("{{\"held\": true}}");
                }
                Err(error) => println!("{{\"held\": false, \"error\": \"{error}\"}}"),
            },
            "release" => {
                if let Some(lock) = held.take() {
                    lock.release().await; // does not tell whether the lock was still held
                }
                println!("{{\"released\": true}}");
            }
            "quit" => break,
            _ => println!("{{\"error\": \"unknown command\"}}"),
        }
    }
}
