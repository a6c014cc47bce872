//! Invalid framing, unusual lines, and other protocols.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    Row {
        printed: "-ERR Protocol error: invalid multibulk length|",
        described: &[
            b"*",
            b"*\r\n",
            b"*x\r\n",
            b"*1x\r\n",
            b"* 1\r\n",
            b"*+1\r\n",
            b"*01\r\n",
            b"*-0\r\n",
            b"*-\r\n",
            b"*65\r\n",
            b"*1024\r\n",
            b"*2147483648\r\n",
            b"*9223372036854775807\r\n",
            b"*18446744073709551616\r\n",
            b"*1e1\r\n",
            b"*0x1\r\n",
            b"*1.0\r\n",
            b"*NaN\r\n",
            b"*1\n$4\r\nPING\r\n",
            b"*1\r$4\r\nPING\r\n",
            b"*111111111111111111111111111",
        ],
    },
    Row {
        printed: "+PONG|",
        described: &[b"*0\r\n", b"*-1\r\n", b"*-2\r\n", b"\r\n", b"\n", b"   \r\n"],
    },
    Row {
        printed: "-ERR Protocol error: invalid bulk length|",
        described: &[
            b"*64\r\n$x\r\n",
            b"*1\r\n$\r\n",
            b"*1\r\n$-1\r\n",
            b"*1\r\n$-2\r\n",
            b"*1\r\n$+4\r\nPING\r\n",
            b"*1\r\n$04\r\nPING\r\n",
            b"*1\r\n$4.0\r\nPING\r\n",
            b"*1\r\n$65537\r\n",
            b"*1\r\n$536870912\r\n",
            b"*1\r\n$9223372036854775808\r\n",
            b"*1\r\n$1e3\r\n",
            b"*1\r\n$4 \r\nPING\r\n",
            b"*1\r\n$44444444444444444444444444444",
            b"*1\r\n$4\rPING\r\n",
        ],
    },
    Row { printed: "-ERR Protocol error: expected '$', got 'P'|", described: &[b"*1\r\nPING\r\n"] },
    Row { printed: "-ERR Protocol error: expected '$', got ':'|", described: &[b"*1\r\n:1\r\n"] },
    Row {
        printed: "-ERR Protocol error: expected '$', got '+'|",
        described: &[b"*1\r\n+PING\r\n"],
    },
    Row {
        printed: "-ERR Protocol error: expected '$', got '-'|",
        described: &[b"*1\r\n-PING\r\n"],
    },
    Row {
        printed: "-ERR Protocol error: expected '$', got '*'|",
        described: &[b"*1\r\n*1\r\n$4\r\nPING\r\n"],
    },
    Row { printed: "-ERR Protocol error: expected '$', got '%'|", described: &[b"*1\r\n%1\r\n"] },
    Row { printed: "-ERR Protocol error: expected '$', got '~'|", described: &[b"*1\r\n~1\r\n"] },
    Row { printed: "-ERR Protocol error: expected '$', got '>'|", described: &[b"*1\r\n>1\r\n"] },
    Row { printed: "-ERR Protocol error: expected '$', got '_'|", described: &[b"*1\r\n_\r\n"] },
    Row { printed: "-ERR Protocol error: expected '$', got '#'|", described: &[b"*1\r\n#t\r\n"] },
    Row { printed: "-ERR Protocol error: expected '$', got ','|", described: &[b"*1\r\n,1.5\r\n"] },
    Row { printed: "-ERR Protocol error: expected '$', got '('|", described: &[b"*1\r\n(1\r\n"] },
    Row {
        printed: "-ERR Protocol error: expected '$', got '='|",
        described: &[b"*1\r\n=7\r\ntxt:abc\r\n"],
    },
    Row {
        printed: "-ERR Protocol error: expected '$', got '!'|",
        described: &[b"*1\r\n!3\r\nERR\r\n"],
    },
    Row { printed: "-ERR Protocol error: expected '$', got '\\r'|", described: &[b"*1\r\n\r\n"] },
    Row { printed: "-ERR Protocol error: expected '$', got '\\x00'|", described: &[b"*1\r\n\0"] },
    Row {
        printed: "-ERR Protocol error: expected CRLF after a bulk|",
        described: &[
            b"*1\r\n$4\r\nPINGx\r\n",
            b"*1\r\n$3\r\nPING\r\n",
            b"*1\r\n$4\r\nPING\n\r",
            b"*1\r\n$5\r\nPING\r\n",
        ],
    },
    Row {
        printed: "-ERR unknown command '', with args beginning with: |+PONG|",
        described: &[b"*1\r\n$0\r\n\r\n", b"\"\"\r\n"],
    },
    Row { printed: "$0||+PONG|", described: &[b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n"] },
    Row { printed: "$2|||+PONG|", described: &[b"*2\r\n$4\r\nECHO\r\n$2\r\n\r\n\r\n"] },
    Row { printed: "$3|\0�\n|+PONG|", described: &[b"*2\r\n$4\r\nECHO\r\n$3\r\n\0\xff\n\r\n"] },
    Row {
        printed: "-ERR unknown command '?', with args beginning with: |+PONG|",
        described: &[b"\0\r\n"],
    },
    Row {
        printed: "-ERR unknown command '��', with args beginning with: |+PONG|",
        described: &[b"\xff\xfe\r\n"],
    },
    Row {
        printed: "-ERR unknown command '$4', with args beginning with: |+PONG|+PONG|",
        described: &[b"$4\r\nPING\r\n"],
    },
    Row {
        printed: "-ERR unknown command ':1', with args beginning with: |+PONG|",
        described: &[b":1\r\n"],
    },
    Row {
        printed: "-ERR unknown command '+OK', with args beginning with: |+PONG|",
        described: &[b"+OK\r\n"],
    },
    Row { printed: "+PONG|+PONG|", described: &[b"PING\n", b"\"PING\"\r\n"] },
    Row {
        printed: "$2|*1|-ERR unknown command '$4', with args beginning with: |+PONG|",
        described: &[b"PING\r"],
    },
    Row {
        printed: "-ERR Protocol error: unbalanced quotes in request|",
        described: &[b"\"PING\r\n", b"'PING'x\r\n"],
    },
    Row { printed: "$3|xzz|+PONG|", described: &[b"ECHO \"\\xzz\"\r\n"] },
    Row { printed: "$5||+OK|+PONG|", described: &[b"ECHO \"\\x0d\\x0a+OK\"\r\n"] },
    Row { printed: "$8|a|+OK||+PONG|", described: &[b"PING \"a\\r\\n+OK\\r\\n\"\r\n"] },
    Row {
        printed: "-ERR unknown command '????????�??', with args beginning with: |+PONG|",
        described: &[b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n"],
    },
    Row {
        printed: "-ERR unknown command 'NONSENSE', with args beginning with: '??+OK' |+PONG|",
        described: &[b"NONSENSE \"\\r\\n+OK\"\r\n"],
    },
    Row {
        printed: "",
        described: &[
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 6\r\n\r\nPING\r\n",
            b"get key\r\n",
            b"Host: 127.0.0.1\r\n",
            b"OPTIONS * HTTP/1.1\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ],
    },
];
