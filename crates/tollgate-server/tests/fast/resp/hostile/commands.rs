//! Invalid uses of commands, and Redis' own commands.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    Row {
        printed: "-ERR wrong number of arguments for 'auth' command|+PONG|",
        described: &[b"AUTH\r\n"],
    },
    Row { printed: "-ERR syntax error|+PONG|", described: &[b"AUTH a b c\r\n"] },
    Row {
        printed: "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?|+PONG|",
        described: &[b"AUTH wrong\r\n"],
    },
    Row {
        printed: "-NOPROTO unsupported protocol version|+PONG|",
        described: &[b"HELLO 1\r\n", b"HELLO 99999999999999999999\r\n"],
    },
    Row {
        printed: "-ERR Protocol version is not an integer or out of range|+PONG|",
        described: &[b"HELLO -3\r\n"],
    },
    Row {
        printed: "-ERR Syntax error in HELLO option 'AUTH'|+PONG|",
        described: &[b"HELLO 3 AUTH default\r\n"],
    },
    Row {
        printed: "-ERR Syntax error in HELLO option 'SETNAME'|+PONG|",
        described: &[b"HELLO 3 SETNAME\r\n"],
    },
    Row {
        printed: "-ERR Client names cannot contain spaces, newlines or special characters.|+PONG|",
        described: &[b"HELLO 3 SETNAME \"a b\"\r\n", b"CLIENT SETNAME \"\\x01\"\r\n"],
    },
    Row {
        printed: "-ERR wrong number of arguments for 'select' command|+PONG|",
        described: &[b"SELECT\r\n"],
    },
    Row { printed: "-ERR DB index is out of range|+PONG|", described: &[b"SELECT -1\r\n"] },
    Row {
        printed: "-ERR value is not an integer or out of range|+PONG|",
        described: &[b"SELECT 9223372036854775808\r\n"],
    },
    Row {
        printed: "-ERR wrong number of arguments for 'client' command|+PONG|",
        described: &[b"CLIENT\r\n"],
    },
    Row {
        printed: "-ERR lib-name cannot contain spaces, newlines or special characters.|+PONG|",
        described: &[b"CLIENT SETINFO lib-name \"a b\"\r\n"],
    },
    Row {
        printed: "-ERR unknown subcommand 'REPLY'. Try CLIENT HELP.|+PONG|",
        described: &[b"CLIENT REPLY OFF\r\n"],
    },
    Row {
        printed: "-ERR unknown subcommand 'TRACKING'. Try CLIENT HELP.|+PONG|",
        described: &[b"CLIENT TRACKING ON\r\n"],
    },
    Row {
        printed: "-ERR unknown subcommand 'NOTHING'. Try COMMAND HELP.|+PONG|",
        described: &[b"COMMAND NOTHING\r\n"],
    },
    Row {
        printed: "-ERR unknown subcommand 'COUNT'. Try COMMAND HELP.|+PONG|",
        described: &[b"COMMAND COUNT 1\r\n"],
    },
    Row {
        printed: "-ERR unknown command 'SUBSCRIBE', with args beginning with: 'a' |+PONG|",
        described: &[b"SUBSCRIBE a\r\n"],
    },
    Row { printed: "+OK|+QUEUED|", described: &[b"MULTI\r\n"] },
    Row {
        printed: "-ERR scripts are not supported: send CL.THROTTLE as a command of its own, or \
                  several of them between MULTI and EXEC|+PONG|",
        described: &[b"EVAL \"return 1\" 0\r\n"],
    },
    Row {
        printed: "-ERR unknown command 'CONFIG', with args beginning with: 'GET' '*' |+PONG|",
        described: &[b"CONFIG GET *\r\n"],
    },
    Row {
        printed: "-ERR unknown command 'DEBUG', with args beginning with: 'SLEEP' '1' |+PONG|",
        described: &[b"DEBUG SLEEP 1\r\n"],
    },
    Row {
        printed: "-ERR unknown command 'SHUTDOWN', with args beginning with: |+PONG|",
        described: &[b"SHUTDOWN\r\n"],
    },
    Row {
        printed: "-ERR unknown command 'SLAVEOF', with args beginning with: 'a' '1' |+PONG|",
        described: &[b"SLAVEOF a 1\r\n"],
    },
    Row {
        printed: "-ERR unknown command 'MONITOR', with args beginning with: |+PONG|",
        described: &[b"MONITOR\r\n"],
    },
    Row {
        printed: "-ERR unknown command 'KEYS', with args beginning with: '*' |+PONG|",
        described: &[b"KEYS *\r\n"],
    },
    Row {
        printed: "-ERR unknown command 'FLUSHALL', with args beginning with: |+PONG|",
        described: &[b"FLUSHALL\r\n"],
    },
    Row {
        printed: "-ERR wrong number of arguments for 'tollgate.charge' command|+PONG|",
        described: &[b"TG.CHARGE\r\n", b"TG.CHARGE core\r\n"],
    },
    Row {
        printed: "-ERR the cost \"NaN\" is not a whole number from 0 to 9007199254740991|+PONG|",
        described: &[b"TG.CHARGE core NaN\r\n"],
    },
    Row {
        printed: "-ERR the cost \"0x10\" is not a whole number from 0 to 9007199254740991|+PONG|",
        described: &[b"TG.CHARGE core 0x10 token a\r\n"],
    },
    Row {
        printed: "-ERR a dimension has no value: write dimension and value in turn|+PONG|",
        described: &[b"TG.CHARGE core 1 token\r\n", b"TG.STANDING a\r\n"],
    },
    Row {
        printed: "-ERR the dimension \"token\" is there twice|+PONG|",
        described: &[b"TG.CHARGE core 1 token a token a\r\n"],
    },
    Row {
        printed: "-ERR there is no limit \"core\\0\"|+PONG|",
        described: &[b"TG.CHARGE \"core\\x00\" 1 token a\r\n"],
    },
    Row {
        printed: "-ERR the cost \"18446744073709551616\" is not a whole number from 0 to \
            9007199254740991|+PONG|",
        described: &[b"TG.CHARGE core 18446744073709551616 token a\r\n"],
    },
    Row {
        printed: "-ERR the cost \"+1\" is not a whole number from 0 to 9007199254740991|+PONG|",
        described: &[b"TG.CHARGE core +1 token a\r\n"],
    },
    Row {
        printed: "-ERR the cost \"\" is not a whole number from 0 to 9007199254740991|+PONG|",
        described: &[b"TG.CHARGE core \"\" token a\r\n"],
    },
    Row {
        printed: "-ERR the cost \"1e3\" is not a whole number from 0 to 9007199254740991|+PONG|",
        described: &[b"TG.PEEK core 1e3 token a\r\n"],
    },
    Row {
        printed: "-ERR wrong number of arguments for 'tollgate.refund' command|+PONG|",
        described: &[b"TG.REFUND\r\n", b"TG.REFUND a b\r\n"],
    },
    Row {
        printed: "-ERR this is not a receipt: send the text unchanged|+PONG|",
        described: &[
            b"TG.REFUND \"\"\r\n",
            b"TG.REFUND ../../etc/passwd\r\n",
            b"TG.REFUND \xff\r\n",
        ],
    },
    Row {
        printed: "-ERR the receipt has version 1, and 3 and 4 are read: refund it through a node of the version that issued it|+PONG|",
        described: &[b"TG.REFUND AQ\r\n"],
    },
    Row {
        printed: "-ERR the dimension is not UTF-8|+PONG|",
        described: &[b"TG.STANDING \xff\xfe a\r\n"],
    },
];
