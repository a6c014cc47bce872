//! Numbers that are invalid, or out of range for a bucket.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    Row {
        printed: "-Cell error: Store error: Couldn't parse as integer: NaN|+PONG|",
        described: &[b"CL.THROTTLE k NaN 1 1\r\n"],
    },
    Row {
        printed: "-Cell error: Store error: Couldn't parse as integer: inf|+PONG|",
        described: &[b"CL.THROTTLE k inf 1 1\r\n"],
    },
    Row {
        printed: "-Cell error: Store error: Couldn't parse as integer: 1e3|+PONG|",
        described: &[b"CL.THROTTLE k 1 1e3 1\r\n"],
    },
    Row {
        printed: "-Cell error: Store error: Couldn't parse as integer: 0x10|+PONG|",
        described: &[b"CL.THROTTLE k 1 0x10 1\r\n"],
    },
    Row {
        printed: "-Cell error: Store error: Couldn't parse as integer: 1.5|+PONG|",
        described: &[b"CL.THROTTLE k 1.5 1 1\r\n"],
    },
    Row {
        printed: "-Cell error: Store error: Couldn't parse as integer: 1.0|+PONG|",
        described: &[b"CL.THROTTLE k 1 1 1.0\r\n"],
    },
    Row {
        printed: "-ERR the burst must be from 1 to 9007199254740991, not 9223372036854775807|+PONG|",
        described: &[
            b"CL.THROTTLE k 9223372036854775807 1 1\r\n",
            b"THROTTLE k 9223372036854775807 1 1\r\n",
        ],
    },
    Row {
        printed: "-Cell error: Store error: Couldn't parse as integer: 9223372036854775808|+PONG|",
        described: &[b"CL.THROTTLE k 9223372036854775808 1 1\r\n"],
    },
    Row {
        printed: "*5|:1|:-9223372036854775807|:0|:-1|:0|+PONG|",
        described: &[b"CL.THROTTLE k -9223372036854775808 1 1\r\n"],
    },
    Row {
        printed: "-Cell error: Store error: Couldn't parse as integer: -9223372036854775809|+PONG|",
        described: &[b"CL.THROTTLE k -9223372036854775809 1 1\r\n"],
    },
    Row {
        printed: "-Cell error: Store error: Zero rates are not supported|+PONG|",
        described: &[b"CL.THROTTLE k 1 0 1\r\n", b"CL.THROTTLE k -2 0 1\r\n"],
    },
    Row {
        printed: "-ERR the count must be from 1 to 9007199254740991, not -1|+PONG|",
        described: &[b"CL.THROTTLE k 1 -1 1\r\n"],
    },
    Row {
        printed: "-Cell error: Store error: Zero rates are not supported|+PONG|",
        described: &[b"CL.THROTTLE k 1 1 0\r\n"],
    },
    Row {
        printed: "-ERR the period must be from 1 to 9007199254740991, not -1|+PONG|",
        described: &[b"CL.THROTTLE k 1 1 -1\r\n"],
    },
    Row {
        printed: "-ERR the count must be from 1 to 9007199254740991, not 9223372036854775807|+PONG|",
        described: &[b"CL.THROTTLE k 1 9223372036854775807 1\r\n"],
    },
    Row {
        printed: "-ERR the period must be from 1 to 9007199254740991, not 9223372036854775807|+PONG|",
        described: &[b"CL.THROTTLE k 1 1 9223372036854775807\r\n"],
    },
    Row {
        printed: "-ERR the window 9007199254740000 is too large: at most 315619200000, ten years in milliseconds|+PONG|",
        described: &[b"CL.THROTTLE k 1 1 9007199254740\r\n"],
    },
    Row {
        printed: "-ERR negative quantity: -1|+PONG|",
        described: &[b"CL.THROTTLE k 1 1 1 -1\r\n", b"THROTTLE k 1 1 1 -1\r\n"],
    },
    Row {
        printed: "-ERR the quantity 9223372036854775807 is above 9007199254740991|+PONG|",
        described: &[b"CL.THROTTLE k 1 1 1 9223372036854775807\r\n"],
    },
    Row {
        printed: "-ERR the quantity 9007199254740992 is above 9007199254740991|+PONG|",
        described: &[b"CL.THROTTLE k 1 1 1 9007199254740992\r\n"],
    },
    Row {
        printed: "*5|:1|:2|:2|:-1|:0|+PONG|",
        described: &[b"CL.THROTTLE k 1 1 1 9007199254740991\r\n"],
    },
    Row {
        printed: "-Cell error: Store error: Couldn't parse as integer: 18446744073709551616|+PONG|",
        described: &[b"CL.THROTTLE k 1 1 1 18446744073709551616\r\n"],
    },
    Row { printed: "*5|:0|:2|:1|:-1|:1|+PONG|", described: &[b"CL.THROTTLE k 1 1 1 +1\r\n"] },
    Row {
        printed: "-ERR the burst 9007199254740991 is too large: at most 9007199254740, because burst × window in milliseconds must be below 2^53|+PONG|",
        described: &[b"CL.THROTTLE k 9007199254740990 1 1\r\n"],
    },
    Row {
        printed: "-ERR the burst 4503599627370497 is too large: at most 2501999792, because burst × window in milliseconds must be below 2^53|+PONG|",
        described: &[b"CL.THROTTLE k 4503599627370496 1 3600\r\n"],
    },
    Row {
        printed: "*5|:0|:1|:0|:-1|:1|+PONG|",
        described: &[b"CL.THROTTLE k 0 9007199254740991 1\r\n"],
    },
    Row {
        printed: "-Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]|+PONG|",
        described: &[b"CL.THROTTLE k 1 1 1 1 1\r\n"],
    },
    Row {
        printed: "-Cell error: Store error: Couldn't parse as integer: 1 |+PONG|",
        described: &[b"CL.THROTTLE k 1 \"1 \" 1\r\n"],
    },
    Row {
        printed: "-Cell error: Store error: Couldn't parse as integer: |+PONG|",
        described: &[b"CL.THROTTLE k 1 '' 1\r\n"],
    },
    Row {
        printed: "-Cell error: Store error: Couldn't parse as integer: 1?|+PONG|",
        described: &[b"CL.THROTTLE k 1 \"1\\x00\" 1\r\n"],
    },
    Row {
        printed: "-Cell error: Store error: Couldn't parse as integer: ١|+PONG|",
        described: &[b"CL.THROTTLE k 1 \xd9\xa1 1\r\n"],
    },
    Row {
        printed: "-Cell error: Store error: Couldn't parse as integer: 1_000|+PONG|",
        described: &[b"CL.THROTTLE k 1_000 1 1\r\n"],
    },
    Row {
        printed: "*5|:0|:2|:1|:-1|:1|-ERR unknown command '+OK', with args beginning with: |+PONG|",
        described: &[b"CL.THROTTLE k 1 1 1 1 \r\n+OK\r\n"],
    },
    Row {
        printed: "-ERR wrong number of arguments for 'throttle' command|+PONG|",
        described: &[b"THROTTLE k\r\n", b"THROTTLE k 1 1 1 1 1\r\n"],
    },
    Row {
        printed: "-ERR invalid rate limit parameters|+PONG|",
        described: &[
            b"THROTTLE k 0 1 1\r\n",
            b"THROTTLE k -1 1 1\r\n",
            b"THROTTLE k 1 0 1\r\n",
            b"THROTTLE k 1 1 0\r\n",
        ],
    },
    Row { printed: "-ERR invalid max_burst|+PONG|", described: &[b"THROTTLE k x 1 1\r\n"] },
    Row { printed: "-ERR invalid count_per_period|+PONG|", described: &[b"THROTTLE k 1 x 1\r\n"] },
    Row { printed: "-ERR invalid period|+PONG|", described: &[b"THROTTLE k 1 1 x\r\n"] },
    Row { printed: "-ERR invalid quantity|+PONG|", described: &[b"THROTTLE k 1 1 1 x\r\n"] },
    Row {
        printed: "-ERR the burst 5000000000 is too large: at most 285616, because burst × window in milliseconds must be below 2^53|+PONG|",
        described: &[b"THROTTLE k 5000000000 1 31536000\r\n"],
    },
    Row {
        printed: "-ERR the burst 4294967297 is too large: at most 285616, because burst × window in milliseconds must be below 2^53|+PONG|",
        described: &[b"THROTTLE k 4294967297 1 31536000\r\n"],
    },
];
