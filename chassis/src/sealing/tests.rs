use proptest::prelude::*;

use super::*;
use crate::entropy::{OsEntropy, SeededEntropy};

const PLACE: &str = "signing_keys.seed/1";
const ONE: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const OTHER: &str = "2222222222222222222222222222222222222222222222222222222222222222";

fn ring(text: &str) -> Keyring {
    Keyring::parse(text).unwrap()
}

#[test]
fn a_key_is_read_in_each_spelling() {
    let bytes: Vec<u8> = (0..32).map(|number| number * 8 + 3).collect();
    let as_hex = hex::encode(&bytes);
    let standard = base64::engine::general_purpose::STANDARD.encode(&bytes);
    let url_safe = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&bytes);
    let id = ring(&as_hex).ids();
    for spelled in [as_hex.to_uppercase(), standard, url_safe, format!(" {as_hex}\n")] {
        assert_eq!(ring(&spelled).ids(), id, "{spelled}");
    }
    assert_eq!(ring(&format!("{ONE}, {OTHER}")).ids().len(), 2);
}

#[test]
fn what_is_no_key_is_refused_without_being_repeated() {
    assert_eq!(Keyring::parse(" ,\n").unwrap_err(), KeyringError::Empty);
    let short = &ONE[1..];
    let long = format!("{ONE}1");
    for odd in ["password", short, &long, "ä", "11=="] {
        let refusal = Keyring::parse(&format!("{ONE},{odd}")).unwrap_err();
        assert_eq!(refusal, KeyringError::Malformed(2), "{odd}");
        assert!(!refusal.to_string().contains(odd), "{refusal}");
    }
}

#[test]
fn old_keys_open_and_the_first_seals() {
    let before = ring(ONE);
    let sealed = before.seal(b"seed", PLACE, &OsEntropy).unwrap();
    let both = ring(&format!("{OTHER},{ONE}"));
    assert_eq!(both.open(&sealed, PLACE).unwrap().as_slice(), b"seed");
    assert!(before.is_current(&sealed));
    assert!(!both.is_current(&sealed));

    let again = both.seal(b"seed", PLACE, &OsEntropy).unwrap();
    assert!(both.is_current(&again));
    assert_eq!(both.without_old_keys().open(&again, PLACE).unwrap().as_slice(), b"seed");
    assert_eq!(before.open(&again, PLACE).unwrap_err(), OpenError::UnknownKey(ring(OTHER).ids()[0].clone()));
}

#[test]
fn a_secret_opens_in_its_place_only() {
    let ring = ring(ONE);
    let sealed = ring.seal(b"seed", PLACE, &OsEntropy).unwrap();
    assert_eq!(ring.open(&sealed, "signing_keys.seed/2").unwrap_err(), OpenError::Damaged);
}

#[test]
fn the_same_secret_is_never_sealed_alike() {
    let ring = ring(ONE);
    let entropy = SeededEntropy::new(1);
    let seal = || ring.seal(b"seed", PLACE, &entropy).unwrap();
    assert_ne!(seal(), seal());
}

#[test]
fn a_ring_survives_its_text_and_grows_at_the_front() {
    let old = Keyring::generate(&SeededEntropy::new(1));
    let sealed = old.seal(b"seed", PLACE, &OsEntropy).unwrap();
    let grown = Keyring::parse(&old.with_new_key(&SeededEntropy::new(2)).to_text()).unwrap();
    assert_eq!(grown.ids().len(), 2);
    assert_eq!(grown.open(&sealed, PLACE).unwrap().as_slice(), b"seed");
    assert!(!grown.is_current(&sealed));
}

#[test]
fn debug_shows_no_key() {
    let shown = format!("{:?}", ring(ONE));
    assert!(!shown.contains("1111111111"), "{shown}");
}

proptest! {
    #[test]
    fn every_secret_comes_back(secret: Vec<u8>, place: String) {
        let ring = ring(ONE);
        let sealed = ring.seal(&secret, &place, &OsEntropy).unwrap();
        prop_assert!(!sealed.windows(secret.len().max(8)).any(|part| part == secret));
        let opened = ring.open(&sealed, &place).unwrap();
        prop_assert_eq!(opened.as_slice(), secret.as_slice());
    }

    #[test]
    fn nothing_else_opens(envelope: Vec<u8>, at in 0_usize..60, flip in 1_u8..) {
        let ring = ring(ONE);
        prop_assert!(ring.open(&envelope, PLACE).is_err());
        let mut sealed = ring.seal(b"a seed of thirty-two bytes, about", PLACE, &OsEntropy).unwrap();
        sealed[at] ^= flip;
        prop_assert!(ring.open(&sealed, PLACE).is_err());
    }
}
