//! Commands of the Redis protocol.

#[path = "../../crates/tollgate-server/src/resp/args.rs"]
#[allow(dead_code, unreachable_pub)]
mod args;
#[path = "../../crates/tollgate-server/src/resp/frame.rs"]
#[allow(dead_code, unreachable_pub)]
mod frame;
#[path = "../../crates/tollgate-server/src/resp/inline.rs"]
#[allow(dead_code, unreachable_pub)]
mod inline;
#[path = "../../crates/tollgate-server/src/resp/protocol_error.rs"]
#[allow(dead_code, unreachable_pub)]
mod protocol_error;

use frame::ClientAuth;

type Parsed = Result<Option<(Vec<Vec<u8>>, usize)>, String>;

/// A part of the input never contradicts the whole, and a command that was parsed is parsed equally
/// when it is written as an array.
pub fn check(data: &[u8]) {
    let Some((input, place)) = crate::cut(data) else { return };
    for client in [ClientAuth::Authenticated, ClientAuth::Unauthenticated] {
        let whole = parse(input, client);
        match (parse(&input[..place], client), &whole) {
            (Ok(None), _) => {}
            (part, whole) => assert_eq!(part, *whole, "the first {place} bytes"),
        }
        let Ok(Some((args, length))) = whole else { continue };
        assert!(length <= input.len());
        let longest = args.iter().map(Vec::len).max().unwrap_or(0);
        if client == ClientAuth::Authenticated && !args.is_empty() && longest <= frame::MAX_BULK {
            let mut array = format!("*{}\r\n", args.len()).into_bytes();
            for arg in &args {
                array.extend(format!("${}\r\n", arg.len()).bytes());
                array.extend(arg);
                array.extend(b"\r\n");
            }
            assert_eq!(parse(&array, client), Ok(Some((args, array.len()))));
        }
    }
}

fn parse(input: &[u8], client: ClientAuth) -> Parsed {
    let mut unquoted = Vec::new();
    match frame::parse(input, client, &mut unquoted) {
        Ok(None) => Ok(None),
        Ok(Some((args, length))) => {
            Ok(Some((args.iter().map(|arg| arg.to_vec()).collect(), length)))
        }
        Err(error) => Err(error.to_string()),
    }
}
