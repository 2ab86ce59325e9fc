//! What a client asks, and what is an answer to it: RFC 1035, section 4; RFC 5452, section 9.1; RFC
//! 6891.

use simple_dns::Packet;

/// Bytes before the question.
const HEADER: usize = 12;
/// What a client takes over UDP that says nothing else (RFC 1035, section 4.2.1).
const USUAL_ROOM: u16 = 512;
/// Longest name on the wire (RFC 1035, section 2.3.4).
const LONGEST_NAME: usize = 255;
/// In the third byte of a header.
const RESPONSE: u8 = 0x80;
const OPCODE: u8 = 0x78;
const TRUNCATED: u8 = 0x02;
const AUTHORITATIVE: u8 = 0x04;
const RECURSION_DESIRED: u8 = 0x01;
/// Of the fourth.
const RECURSION_AVAILABLE: u8 = 0x80;
const RCODE: u8 = 0x0f;

/// Types that answers with addresses have: A, AAAA, SVCB, HTTPS, and any.
const OF_ADDRESSES: [[u8; 2]; 5] = [[0, 1], [0, 28], [0, 64], [0, 65], [0, 255]];

/// A question that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    id: [u8; 2],
    opcode: u8,
    /// The client's wish that the resolver ask others (RFC 1035, section 4.1.1: RD).
    recursion: u8,
    /// The name as it is on the wire.
    name: Box<[u8]>,
    /// Type and class.
    kind: [u8; 4],
    /// Longest answer over UDP that the client takes, if it has EDNS.
    edns: Option<u16>,
}

/// A resolver that answers so cannot or will not help (resolv.conf(5): the next one is asked).
pub(crate) const fn is_unhelpful(answer: &[u8]) -> bool {
    // Server failure, not implemented, refused.
    answer.len() >= HEADER && matches!(answer[3] & RCODE, 2 | 4 | 5)
}

impl Question {
    /// The only question of `message`.
    pub(crate) fn read(message: &[u8]) -> Option<Self> {
        let (name, kind) = section(message)?;
        if message[2] & RESPONSE != 0 {
            return None;
        }
        let parsed = Packet::parse(message).ok();
        let edns = parsed.as_ref().and_then(Packet::opt).map(|opt| opt.udp_packet_size);
        Some(Self {
            id: [message[0], message[1]],
            opcode: message[2] & OPCODE,
            recursion: message[2] & RECURSION_DESIRED,
            name: name.into(),
            kind,
            edns,
        })
    }

    /// `message` has this question's number, and the question itself.
    pub(crate) fn is_answered_by(&self, message: &[u8]) -> bool {
        let Some((name, kind)) = section(message) else { return false };
        message[2] & (RESPONSE | OPCODE) == RESPONSE | self.opcode
            && message[..2] == self.id
            && kind == self.kind
            // No length of a label is a letter.
            && name.eq_ignore_ascii_case(&self.name)
    }

    /// An answer may have addresses of the name.
    pub(crate) fn is_for_addresses(&self) -> bool {
        OF_ADDRESSES.contains(&[self.kind[0], self.kind[1]])
    }

    /// Longest answer that the client takes over UDP (RFC 6891, section 6.2.3).
    pub(crate) fn room(&self) -> usize {
        self.edns.unwrap_or(0).max(USUAL_ROOM).into()
    }

    /// The name in small letters. What no host's name has is escaped, a dot inside a label, too
    /// (RFC 4343, section 2.1).
    pub(crate) fn name(&self) -> String {
        let mut text = String::new();
        let mut rest = &self.name[..];
        while let [length, more @ ..] = rest
            && let Some((label, more)) = more.split_at_checked(usize::from(*length))
            && !label.is_empty()
        {
            if !text.is_empty() {
                text.push('.');
            }
            for &byte in label {
                if byte.is_ascii_alphanumeric() || b"-_".contains(&byte) {
                    text.push(byte.to_ascii_lowercase().into());
                } else {
                    text.push_str(&format!("\\{byte:03}"));
                }
            }
            rest = more;
        }
        text
    }

    /// A standard query, and no other operation on names.
    pub(crate) const fn is_query(&self) -> bool {
        self.opcode == 0
    }

    /// The numbers of type and class.
    pub(crate) fn kind_and_class(&self) -> [u16; 2] {
        let [a, b, c, d] = self.kind;
        [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]
    }

    /// An answer of the proxy's own, with `records` and a code (RFC 1035, section 4.1.1).
    pub(crate) fn answered(&self, code: u8, records: &[Vec<u8>]) -> Vec<u8> {
        // More would be longer than any message.
        let count = u16::try_from(records.len()).unwrap_or(u16::MAX);
        let [high, low] = count.to_be_bytes();
        let authoritative = if code == 0 { AUTHORITATIVE } else { 0 };
        let flags = RESPONSE | self.opcode | authoritative | self.recursion;
        let mut answer = self.id.to_vec();
        answer.extend([flags, RECURSION_AVAILABLE | code, 0, 1, high, low, 0, 0, 0]);
        answer.push(u8::from(self.edns.is_some()));
        answer.extend(&self.name);
        answer.extend(self.kind);
        answer.extend(records.iter().take(count.into()).flatten());
        self.end(&mut answer);
        answer
    }

    /// An answer to EDNS has EDNS (RFC 6891, section 6.1.1).
    fn end(&self, answer: &mut Vec<u8>) {
        if self.edns.is_some() {
            let [high, low] = USUAL_ROOM.to_be_bytes();
            // The root, OPT, the size, version 0 without flags, no options.
            answer.extend([0, 0, 41, high, low, 0, 0, 0, 0, 0, 0]);
        }
    }

    /// `answer` without its records: the client asks again over TCP (RFC 2181, section 9).
    pub(crate) fn truncated(&self, answer: &[u8]) -> Vec<u8> {
        let mut short = answer[..HEADER.min(answer.len())].to_vec();
        short.resize(HEADER, 0);
        short[2] |= TRUNCATED;
        short[4..].copy_from_slice(&[0, 1, 0, 0, 0, 0, 0, u8::from(self.edns.is_some())]);
        short.extend(&self.name);
        short.extend(self.kind);
        self.end(&mut short);
        short
    }
}

/// Name, and type with class, of the only question of a message that has a whole header.
fn section(message: &[u8]) -> Option<(&[u8], [u8; 4])> {
    let (header, rest) = message.split_at_checked(HEADER)?;
    if header[4..6] != [0, 1] {
        return None;
    }
    let mut length = 0;
    loop {
        match rest.get(length)? {
            0 => break,
            // A pointer, or a type of label that nobody uses: nothing is before the first name that
            // it could point to.
            64.. => return None,
            label => length += 1 + usize::from(*label),
        }
    }
    let name = rest.get(..=length).filter(|name| name.len() <= LONGEST_NAME)?;
    let kind = rest.get(length + 1..)?.first_chunk()?;
    Some((name, *kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use simple_dns::rdata::OPT;
    use simple_dns::{CLASS, Name, PacketFlag, QCLASS, QTYPE, TYPE};

    /// A question by another hand.
    fn message(id: u16, name: &str, kind: TYPE, edns: Option<u16>) -> Vec<u8> {
        let mut packet = Packet::new_query(id);
        let name = Name::new_unchecked(name);
        let class = QCLASS::CLASS(CLASS::IN);
        packet.questions.push(simple_dns::Question::new(name, QTYPE::TYPE(kind), class, false));
        *packet.opt_mut() =
            edns.map(|udp_packet_size| OPT { opt_codes: vec![], udp_packet_size, version: 0 });
        packet.build_bytes_vec().expect("a message")
    }

    fn answer(mut question: Vec<u8>) -> Vec<u8> {
        question[2] |= RESPONSE;
        question
    }

    #[test]
    fn an_answer_has_the_questions_number_and_the_question() {
        let asked = message(7, "www.Example.test", TYPE::A, None);
        let question = Question::read(&asked).expect("a question");
        assert_eq!(question.name(), "www.example.test");
        for (right, other) in [
            (true, message(7, "WWW.example.TEST", TYPE::A, None)),
            (false, message(8, "www.example.test", TYPE::A, None)),
            (false, message(7, "www.example.test", TYPE::AAAA, None)),
            (false, message(7, "wwx.example.test", TYPE::A, None)),
            (false, message(7, "www.example.test.test", TYPE::A, None)),
        ] {
            assert!(!question.is_answered_by(&other), "a question");
            assert_eq!(question.is_answered_by(&answer(other.clone())), right, "{other:?}");
        }
        assert_eq!(Question::read(&answer(asked.clone())), None);
        for length in 0..asked.len() {
            assert_eq!(Question::read(&asked[..length]), None);
            assert!(!question.is_answered_by(&answer(asked[..length.max(3)].to_vec())));
        }
    }

    #[test]
    fn what_is_no_letter_of_a_hosts_name_is_escaped() {
        let mut asked = message(7, "a.test", TYPE::A, None);
        asked[13] = b'.';
        assert_eq!(Question::read(&asked).expect("a question").name(), "\\046.test");
        asked[12] = 0xc0;
        assert_eq!(Question::read(&asked), None, "a pointer");
    }

    #[test]
    fn an_answer_that_is_too_long_says_so_and_has_edns_if_the_question_had() {
        for edns in [None, Some(4_096)] {
            let asked = message(7, "www.example.test", TYPE::A, edns);
            let question = Question::read(&asked).expect("a question");
            assert_eq!(question.room(), edns.unwrap_or(512).into());
            let short = question.truncated(&answer(asked));
            assert!(question.is_answered_by(&short) && short.len() < 512);
            let short = Packet::parse(&short).expect("a message");
            assert!(short.has_flags(PacketFlag::TRUNCATION | PacketFlag::RESPONSE));
            assert_eq!((short.questions.len(), short.answers.len()), (1, 0));
            assert_eq!(short.opt().is_some(), edns.is_some());
        }
        let tiny = message(7, "www.example.test", TYPE::A, Some(100));
        assert_eq!(Question::read(&tiny).expect("a question").room(), 512);
    }
}
