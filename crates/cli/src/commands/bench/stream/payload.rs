//! What is sent: noise that nothing on the way can compress.

/// A step of the generator, an odd number (Weyl sequence).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Sees to it that at most `max` bytes of `room` hold noise, and says how many. What the buffer
/// holds from earlier data is as good as new noise, so only memory that was never used is written.
pub(super) fn put(room: [&mut [u8]; 2], max: usize) -> usize {
    let mut put = 0;
    for piece in room {
        let length = piece.len().min(max - put);
        let piece = &mut piece[..length];
        if is_blank(piece) {
            fill(piece);
        }
        put += length;
    }
    put
}

/// True if the first or last octets are zeros, as in memory that was never written; noise has none
/// there.
fn is_blank(piece: &[u8]) -> bool {
    let blank = |end: Option<&[u8]>| end.is_none_or(|end| end.iter().all(|octet| *octet == 0));
    blank(piece.first_chunk::<4>().map(<[u8; 4]>::as_slice))
        || blank(piece.last_chunk::<4>().map(<[u8; 4]>::as_slice))
}

fn fill(piece: &mut [u8]) {
    let mut state = piece.len() as u64;
    for chunk in piece.chunks_mut(8) {
        state = state.wrapping_add(STEP);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        // Ones where there were zeros, so that noise is told from blank memory.
        let noise = ((mixed ^ (mixed >> 27)) | 0x0101_0101_0101_0101).to_le_bytes();
        let (filled, _) = noise.split_at(chunk.len());
        chunk.copy_from_slice(filled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_memory_becomes_noise_and_noise_stays() {
        let mut memory = vec![0; 1000];
        let (first, second) = memory.split_at_mut(600);
        assert_eq!(put([first, second], 900), 900);
        assert!(memory[..900].iter().all(|octet| *octet != 0));
        assert!(memory[900..].iter().all(|octet| *octet == 0));
        let before = memory.clone();
        let (first, second) = memory.split_at_mut(100);
        assert_eq!(put([first, &mut second[..700]], 5000), 800);
        assert_eq!(memory, before);
        let mut seen: Vec<&[u8]> = before[..600].chunks(8).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 75);
        assert_eq!(put([&mut [], &mut []], 10), 0);
    }
}
