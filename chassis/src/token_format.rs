//! The shape of API tokens (contract, "Names"): `cairn_`, 40 base62 characters of randomness, and 6 base62 characters
//! of the CRC-32 of all preceding characters, so that a typo is detected without a lookup. OAuth secrets have
//! the same shape with other prefixes ([`Format`]).

use crate::entropy::Entropy;

/// What every API token starts with, for people and for secret scanners.
pub const PREFIX: &str = "cairn_";
/// How many characters of a token are random.
pub const RANDOM_LENGTH: usize = 40;
const CHECKSUM_LENGTH: usize = 6;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE: u32 = 62;
/// The largest multiple of 62 that a byte can hold: bytes from here on would favour some characters.
const UNBIASED: u8 = 248;

/// A kind of secret, identified by its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    prefix: &'static str,
}

impl Format {
    /// An API token.
    pub const API_TOKEN: Self = Self { prefix: PREFIX };
    /// An OAuth access token.
    pub const ACCESS_TOKEN: Self = Self { prefix: "cairn_oa_" };
    /// An OAuth refresh token.
    pub const REFRESH_TOKEN: Self = Self { prefix: "cairn_or_" };
    /// An OAuth authorization code.
    pub const AUTHORIZATION_CODE: Self = Self { prefix: "cairn_oc_" };
    /// The secret of a confidential OAuth client.
    pub const CLIENT_SECRET: Self = Self { prefix: "cairn_os_" };

    /// A new secret of this kind.
    pub fn generate(self, entropy: &dyn Entropy) -> String {
        self.assemble(&random(entropy))
    }

    /// The secret with these 40 base62 characters.
    pub fn assemble(self, random: &str) -> String {
        let body = format!("{}{random}", self.prefix);
        let checksum = checksum(&body);
        body + &checksum
    }

    /// Whether the text has the shape and the checksum of this kind.
    pub fn is_well_formed(self, text: &str) -> bool {
        let Some(secret) = text.strip_prefix(self.prefix) else {
            return false;
        };
        if secret.len() != RANDOM_LENGTH + CHECKSUM_LENGTH
            || !secret.bytes().all(|byte| byte.is_ascii_alphanumeric())
        {
            return false;
        }
        let Some((body, given)) = text.split_at_checked(self.prefix.len() + RANDOM_LENGTH) else {
            return false;
        };
        checksum(body) == given
    }
}

/// So many random bytes is the secret of a web session, in hexadecimal.
pub const SESSION_BYTES: usize = 32;

/// Whether the text has the form of a web session's secret.
pub fn is_session_secret(text: &str) -> bool {
    text.len() == 2 * SESSION_BYTES && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A new API token.
pub fn generate(entropy: &dyn Entropy) -> String {
    Format::API_TOKEN.generate(entropy)
}

/// The API token with these 40 base62 characters.
pub fn assemble(random: &str) -> String {
    Format::API_TOKEN.assemble(random)
}

/// Whether the text has the shape and the checksum of an API token.
pub fn is_well_formed(text: &str) -> bool {
    Format::API_TOKEN.is_well_formed(text)
}

fn random(entropy: &dyn Entropy) -> String {
    let mut random = String::with_capacity(RANDOM_LENGTH);
    let mut bytes = [0_u8; RANDOM_LENGTH];
    while random.len() < RANDOM_LENGTH {
        entropy.fill(&mut bytes);
        let wanted = RANDOM_LENGTH - random.len();
        random.extend(
            bytes.iter().filter(|byte| **byte < UNBIASED).map(|byte| digit(u32::from(*byte))).take(wanted),
        );
    }
    random
}

fn checksum(body: &str) -> String {
    let mut rest = crc32fast::hash(body.as_bytes());
    let mut digits = [' '; CHECKSUM_LENGTH];
    for place in digits.iter_mut().rev() {
        *place = digit(rest);
        rest /= BASE;
    }
    digits.iter().collect()
}

fn digit(number: u32) -> char {
    let place = usize::try_from(number % BASE).unwrap_or_default();
    ALPHABET.get(place).copied().map_or('0', char::from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::entropy::SeededEntropy;

    #[test]
    fn a_new_token_is_well_formed_and_not_repeated() {
        let entropy = SeededEntropy::new(7);
        let token = generate(&entropy);
        assert!(is_well_formed(&token), "{token}");
        assert_eq!(token.len(), 52);
        assert_ne!(token, generate(&entropy));
    }

    #[test]
    fn one_kind_is_never_taken_for_another() {
        let kinds = [
            Format::API_TOKEN,
            Format::ACCESS_TOKEN,
            Format::REFRESH_TOKEN,
            Format::AUTHORIZATION_CODE,
            Format::CLIENT_SECRET,
        ];
        for made in kinds {
            let secret = made.generate(&SeededEntropy::new(1));
            for read in kinds {
                assert_eq!(read.is_well_formed(&secret), read == made, "{secret} as {read:?}");
            }
        }
    }

    #[test]
    fn the_checksum_is_the_standard_crc32() {
        assert_eq!(crc32fast::hash(b"123456789"), 0xCBF4_3926);
        assert_eq!(checksum("123456789"), "3jZRME");
    }

    #[test]
    fn other_shapes_are_refused() {
        let token = assemble(&"a".repeat(RANDOM_LENGTH));
        assert!(is_well_formed(&token));
        let swapped = token.replacen('a', "b", 2);
        for odd in
            ["", "cairn_", "cairn_é", &swapped, &token[1..], &format!("{token}0"), &token.to_uppercase()]
        {
            assert!(!is_well_formed(odd), "{odd}");
        }
    }

    proptest! {
        #[test]
        fn one_wrong_character_is_always_found(seed in any::<u64>(), place in 6_usize..52, other in "[0-9A-Za-z]") {
            let token = generate(&SeededEntropy::new(seed));
            let mut typo = token.clone();
            typo.replace_range(place..=place, &other);
            prop_assert_eq!(is_well_formed(&typo), typo == token);
        }

        #[test]
        fn any_text_is_judged_without_a_panic(text in any::<String>()) {
            is_well_formed(&text);
        }
    }
}
