//! Properties of the parser: splitting the input changes no result, encoded commands are parsed
//! back, and no input causes a panic.

use proptest::prelude::*;

use super::*;

type Parsed = (Vec<Vec<Vec<u8>>>, Result<usize, ProtocolError>);

/// Returns all commands of `input` with the number of bytes left, or the error.
fn whole(input: &[u8], sender: ClientAuth) -> Parsed {
    let mut parser = Fed::new(sender);
    parser.feed(input);
    parser.parsed()
}

/// A parser that receives its bytes in pieces.
struct Fed {
    sender: ClientAuth,
    waiting: Vec<u8>,
    commands: Vec<Vec<Vec<u8>>>,
    error: Option<ProtocolError>,
}

impl Fed {
    fn new(sender: ClientAuth) -> Self {
        Self { sender, waiting: Vec::new(), commands: Vec::new(), error: None }
    }

    fn feed(&mut self, piece: &[u8]) {
        self.waiting.extend_from_slice(piece);
        let mut unquoted = Vec::new();
        while self.error.is_none() {
            let used = match parse(&self.waiting, self.sender, &mut unquoted) {
                Ok(None) => break,
                Ok(Some((args, used))) => {
                    assert!(args.len() <= MAX_ARGS && used <= self.waiting.len() && used > 0);
                    self.commands.push(args.iter().map(|word| word.to_vec()).collect());
                    used
                }
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            };
            self.waiting.drain(..used);
        }
        assert!(self.error.is_some() || self.waiting.len() <= MAX_COMMAND);
    }

    fn parsed(self) -> Parsed {
        let left = self.error.map_or(Ok(self.waiting.len()), Err);
        (self.commands, left)
    }
}

fn written(command: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
    for word in command {
        bytes.extend(format!("${}\r\n", word.len()).bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn commands() -> impl Strategy<Value = Vec<Vec<Vec<u8>>>> {
    let word = prop::collection::vec(any::<u8>(), 0..40);
    prop::collection::vec(prop::collection::vec(word, 1..8), 0..6)
}

/// Returns bytes that look like the protocol, and a few other bytes.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        &b"*"[..],
        b"$",
        b"\r\n",
        b"\r",
        b"\n",
        b"0",
        b"1",
        b"2",
        b"3",
        b"-1",
        b"65",
        b"65537",
        b"9999999999999999999",
        b"PING",
        b" ",
        b"\"",
        b"'",
        b"\\x4",
        b"GET ",
        b"*1\r\n$4\r\nPING\r\n",
        b"\xff",
        b"\0",
        b":",
        b"+",
        b"%1\r\n",
        b"*2\r\n$1\r\na\r\n$",
        b"$3\r\n",
    ]);
    prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
}

fn pieces(input: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let mut rest = input;
    let mut pieces = Vec::new();
    for cut in cuts {
        let (piece, after) = rest.split_at((*cut).min(rest.len()));
        pieces.push(piece.to_vec());
        rest = after;
    }
    pieces.push(rest.to_vec());
    pieces
}

proptest! {
    #[test]
    fn what_is_written_is_read(commands in commands()) {
        let bytes: Vec<u8> = commands.iter().flat_map(|command| written(command)).collect();
        prop_assert_eq!(whole(&bytes, ClientAuth::Authenticated), (commands, Ok(0)));
    }

    #[test]
    fn splits_change_nothing(
        input in prop_oneof![
            noise(),
            commands().prop_map(|all| all.iter().flat_map(|one| written(one)).collect()),
            prop::collection::vec(any::<u8>(), 0..200),
        ],
        cuts in prop::collection::vec(0_usize..12, 0..40),
    ) {
        let mut fed = Fed::new(ClientAuth::Authenticated);
        for piece in pieces(&input, &cuts) {
            fed.feed(&piece);
        }
        prop_assert_eq!(fed.parsed(), whole(&input, ClientAuth::Authenticated));
    }

    #[test]
    fn bytes_one_by_one_are_the_same_bytes(input in noise()) {
        let mut fed = Fed::new(ClientAuth::Unauthenticated);
        for byte in &input {
            fed.feed(&[*byte]);
        }
        prop_assert_eq!(fed.parsed(), whole(&input, ClientAuth::Unauthenticated));
    }
}

#[test]
fn what_waits_is_never_longer_than_a_command_may_be() {
    // The client sends arguments of the greatest length until the command is too long.
    let mut fed = Fed::new(ClientAuth::Authenticated);
    fed.feed(format!("*{MAX_ARGS}\r\n").as_bytes());
    let word = [format!("${MAX_BULK}\r\n").into_bytes(), vec![b'x'; MAX_BULK], b"\r\n".to_vec()];
    for _ in 0..MAX_ARGS {
        fed.feed(&word.concat());
    }
    assert_eq!(fed.error, Some(ProtocolError::CommandTooLong));
}
