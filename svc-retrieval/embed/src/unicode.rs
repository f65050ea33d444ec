//! The character classes of BERT's pre-tokenizer, as far as they bear on Latin text.

/// Characters the tokenizer removes: controls, formats and private use.
pub(crate) fn is_removed(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => false,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{fffd}' => true,
        // General category Cf.
        '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}' => true,
        '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0001}'..='\u{e007f}' => true,
        // General category Co.
        '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}' => true,
        _ => false,
    }
}

/// Characters that are a word of their own because their script does not separate words.
pub(crate) fn is_ideograph(character: char) -> bool {
    matches!(
        character,
        '\u{4e00}'..='\u{9fff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{20000}'..='\u{2a6df}'
            | '\u{2a700}'..='\u{2ceaf}'
            | '\u{f900}'..='\u{faff}'
            | '\u{2f800}'..='\u{2fa1f}'
    )
}

/// Punctuation: every ASCII symbol, and general category P in the blocks that occur between Latin words.
/// The punctuation of other scripts stands between words that have no rows anyway.
pub(crate) fn is_punctuation(character: char) -> bool {
    match character {
        '\0'..='\u{7f}' => character.is_ascii_punctuation(),
        // Latin-1.
        '¡' | '§' | '«' | '¶' | '·' | '»' | '¿' => true,
        // General punctuation, without the fraction slash and the commercial minus, which are symbols.
        '\u{2044}' | '\u{2052}' => false,
        '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' => true,
        // Brackets among the superscripts, the technical and the mathematical symbols, and the dingbats.
        '\u{207d}' | '\u{207e}' | '\u{208d}' | '\u{208e}' | '\u{2308}'..='\u{230b}' => true,
        '\u{2329}' | '\u{232a}' | '\u{2768}'..='\u{2775}' | '\u{27c5}' | '\u{27c6}' => true,
        '\u{27e6}'..='\u{27ef}' | '\u{2983}'..='\u{2998}' | '\u{2e00}'..='\u{2e2e}' => true,
        // CJK and full-width forms.
        '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301f}' | '\u{30fb}' => true,
        '\u{fe30}'..='\u{fe52}' | '\u{ff01}'..='\u{ff03}' | '\u{ff05}'..='\u{ff0a}' => true,
        '\u{ff0c}'..='\u{ff0f}' | '\u{ff1a}' | '\u{ff1b}' | '\u{ff1f}' | '\u{ff20}' => true,
        '\u{ff3b}'..='\u{ff3d}' | '\u{ff3f}' | '\u{ff5b}' | '\u{ff5d}' | '\u{ff5f}'..='\u{ff65}' => true,
        _ => false,
    }
}
