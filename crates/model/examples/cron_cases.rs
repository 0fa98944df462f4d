//! Writes cron expressions for the oracle in `fixtures/cron`, one `start|expression` a line: those that
//! Quartz reads, and some that are nearly so. `cargo run -p kelos-model --example cron_cases [count] [seed]`

#![allow(clippy::disallowed_methods, reason = "a program, not the library")]

use std::env::args;

/// SplitMix64: small, and the same everywhere for ever.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn range(&mut self, min: u64, max: u64) -> u64 {
        min + self.below(max - min + 1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
}

const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

fn main() {
    let mut numbers = args().skip(1).map(|arg| arg.parse().expect("a number"));
    let count = numbers.next().unwrap_or(3000);
    let mut dice = Dice(numbers.next().unwrap_or(1));
    for _ in 0..count {
        let (start, expression) = (start(&mut dice), expression(&mut dice));
        println!("{start}|{expression}");
    }
}

fn start(dice: &mut Dice) -> String {
    let (year, month, day) = (dice.range(1995, 2035), dice.range(1, 12), dice.range(1, 28));
    match dice.below(3) {
        0 => format!("{year}-{month:02}-{day:02}T00:00:00"),
        _ => {
            let (hour, minute, second) = (dice.below(24), dice.below(60), dice.below(60));
            format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
        }
    }
}

fn expression(dice: &mut Dice) -> String {
    let (mut month_day, mut week_day) = (month_days(dice), "?".to_owned());
    if dice.one_in(2) {
        (month_day, week_day) = ("?".to_owned(), week_days(dice));
    }
    let month = match dice.below(3) {
        0 => list(dice, |dice| named(dice, 12, &MONTHS)),
        _ => "*".to_owned(),
    };
    let mut fields = vec![
        if dice.one_in(3) { list(dice, |dice| plain(dice, 0, 59)) } else { "0".to_owned() },
        list(dice, |dice| plain(dice, 0, 59)),
        list(dice, |dice| plain(dice, 0, 23)),
        month_day,
        month,
        week_day,
    ];
    if dice.one_in(6) {
        fields.push(list(dice, years));
    }
    let expression = fields.join(" ");
    if dice.one_in(8) { spoilt(dice, expression) } else { expression }
}

fn list(dice: &mut Dice, item: impl Fn(&mut Dice) -> String) -> String {
    let count = if dice.one_in(4) { dice.range(2, 4) } else { 1 };
    let items: Vec<String> = (0..count).map(|_| item(dice)).collect();
    items.join(",")
}

fn plain(dice: &mut Dice, min: u64, max: u64) -> String {
    let (a, b, step) = (dice.range(min, max), dice.range(min, max), dice.range(1, max));
    match dice.below(8) {
        0 => "*".to_owned(),
        1 => format!("*/{step}"),
        2 => format!("{a}/{step}"),
        3 => format!("{a}-{b}"),
        4 => format!("{a}-{b}/{step}"),
        _ => a.to_string(),
    }
}

fn named(dice: &mut Dice, max: u64, names: &[&str]) -> String {
    let (a, b, step) = (dice.pick(names), dice.pick(names), dice.range(1, max));
    match dice.below(10) {
        0..=4 => plain(dice, 1, max),
        5 => format!("{a}-{b}"),
        6 => a.to_lowercase(),
        7 => format!("{a}/{step}"),
        8 => format!("{a}-{b}/{step}"),
        _ => a.to_owned(),
    }
}

fn month_days(dice: &mut Dice) -> String {
    let (day, before) = (dice.range(1, 31), dice.range(0, 27));
    match dice.below(9) {
        0 => "*".to_owned(),
        1 => "L".to_owned(),
        2 => "LW".to_owned(),
        3 => format!("L-{before}"),
        4 => format!("L-{before}W"),
        5 | 6 => format!("{day}W"),
        _ => list(dice, |dice| plain(dice, 1, 31)),
    }
}

fn week_days(dice: &mut Dice) -> String {
    let (day, name, nth) = (dice.range(1, 7), dice.pick(&WEEKDAYS), dice.range(1, 5));
    match dice.below(10) {
        0 => "*".to_owned(),
        1 => "L".to_owned(),
        2 => format!("{day}L"),
        3 => format!("{name}L"),
        4 => format!("{day}#{nth}"),
        5 => format!("{name}#{nth}"),
        _ => list(dice, |dice| named(dice, 7, &WEEKDAYS)),
    }
}

fn years(dice: &mut Dice) -> String {
    let (a, b) = (dice.range(1990, 2040), dice.range(1990, 2040));
    match dice.below(6) {
        0 => "*".to_owned(),
        1 => format!("*/{}", dice.range(1, 9)),
        2 => format!("{a}/{}", dice.range(1, 9)),
        3 => format!("{}-{}", a.min(b), a.max(b)),
        4 => format!("{a}-{b}/{}", dice.range(1, 9)),
        _ => a.to_string(),
    }
}

/// With a character or two put in, taken away or changed.
fn spoilt(dice: &mut Dice, expression: String) -> String {
    let mut text: Vec<char> = expression.chars().collect();
    for _ in 0..dice.range(1, 2) {
        let place = dice.below(text.len() as u64) as usize;
        let sign =
            dice.pick(&["*", "?", "/", "-", ",", "#", "L", "W", " ", "0", "1", "7", "9", "MON", "JAN", "x", "+"]);
        match dice.below(3) {
            0 => drop(text.remove(place)),
            1 => drop(text.splice(place..=place, sign.chars())),
            _ => drop(text.splice(place..place, sign.chars())),
        }
    }
    text.into_iter().collect()
}
