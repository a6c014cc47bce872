//! Commands that are used wrongly, or are Redis's own.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    Row { told: "-ERR wrong number of arguments for 'auth' command|+PONG|", said: &[b"AUTH\r\n"] },
    Row { told: "-ERR syntax error|+PONG|", said: &[b"AUTH a b c\r\n"] },
    Row {
        told: "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?|+PONG|",
        said: &[b"AUTH wrong\r\n"],
    },
    Row {
        told: "-NOPROTO unsupported protocol version|+PONG|",
        said: &[b"HELLO 1\r\n", b"HELLO 99999999999999999999\r\n"],
    },
    Row {
        told: "-ERR Protocol version is not an integer or out of range|+PONG|",
        said: &[b"HELLO -3\r\n"],
    },
    Row {
        told: "-ERR Syntax error in HELLO option 'AUTH'|+PONG|",
        said: &[b"HELLO 3 AUTH default\r\n"],
    },
    Row {
        told: "-ERR Syntax error in HELLO option 'SETNAME'|+PONG|",
        said: &[b"HELLO 3 SETNAME\r\n"],
    },
    Row {
        told: "-ERR Client names cannot contain spaces, newlines or special characters.|+PONG|",
        said: &[b"HELLO 3 SETNAME \"a b\"\r\n", b"CLIENT SETNAME \"\\x01\"\r\n"],
    },
    Row {
        told: "-ERR wrong number of arguments for 'select' command|+PONG|",
        said: &[b"SELECT\r\n"],
    },
    Row { told: "-ERR DB index is out of range|+PONG|", said: &[b"SELECT -1\r\n"] },
    Row {
        told: "-ERR value is not an integer or out of range|+PONG|",
        said: &[b"SELECT 9223372036854775808\r\n"],
    },
    Row {
        told: "-ERR wrong number of arguments for 'client' command|+PONG|",
        said: &[b"CLIENT\r\n"],
    },
    Row {
        told: "-ERR lib-name cannot contain spaces, newlines or special characters.|+PONG|",
        said: &[b"CLIENT SETINFO lib-name \"a b\"\r\n"],
    },
    Row {
        told: "-ERR unknown subcommand 'REPLY'. Try CLIENT HELP.|+PONG|",
        said: &[b"CLIENT REPLY OFF\r\n"],
    },
    Row {
        told: "-ERR unknown subcommand 'TRACKING'. Try CLIENT HELP.|+PONG|",
        said: &[b"CLIENT TRACKING ON\r\n"],
    },
    Row {
        told: "-ERR unknown subcommand 'NOTHING'. Try COMMAND HELP.|+PONG|",
        said: &[b"COMMAND NOTHING\r\n"],
    },
    Row {
        told: "-ERR unknown subcommand 'COUNT'. Try COMMAND HELP.|+PONG|",
        said: &[b"COMMAND COUNT 1\r\n"],
    },
    Row {
        told: "-ERR unknown command 'SUBSCRIBE', with args beginning with: 'a' |+PONG|",
        said: &[b"SUBSCRIBE a\r\n"],
    },
    Row {
        told: "-ERR unknown command 'MULTI', with args beginning with: |+PONG|",
        said: &[b"MULTI\r\n"],
    },
    Row {
        told: "-ERR unknown command 'EVAL', with args beginning with: 'return 1' '0' |+PONG|",
        said: &[b"EVAL \"return 1\" 0\r\n"],
    },
    Row {
        told: "-ERR unknown command 'CONFIG', with args beginning with: 'GET' '*' |+PONG|",
        said: &[b"CONFIG GET *\r\n"],
    },
    Row {
        told: "-ERR unknown command 'DEBUG', with args beginning with: 'SLEEP' '1' |+PONG|",
        said: &[b"DEBUG SLEEP 1\r\n"],
    },
    Row {
        told: "-ERR unknown command 'SHUTDOWN', with args beginning with: |+PONG|",
        said: &[b"SHUTDOWN\r\n"],
    },
    Row {
        told: "-ERR unknown command 'SLAVEOF', with args beginning with: 'a' '1' |+PONG|",
        said: &[b"SLAVEOF a 1\r\n"],
    },
    Row {
        told: "-ERR unknown command 'MONITOR', with args beginning with: |+PONG|",
        said: &[b"MONITOR\r\n"],
    },
    Row {
        told: "-ERR unknown command 'KEYS', with args beginning with: '*' |+PONG|",
        said: &[b"KEYS *\r\n"],
    },
    Row {
        told: "-ERR unknown command 'FLUSHALL', with args beginning with: |+PONG|",
        said: &[b"FLUSHALL\r\n"],
    },
    Row {
        told: "-ERR wrong number of arguments for 'tollgate.charge' command|+PONG|",
        said: &[b"TG.CHARGE\r\n", b"TG.CHARGE core\r\n"],
    },
    Row {
        told: "-ERR the cost \"NaN\" is no whole number from 0 to 9007199254740991|+PONG|",
        said: &[b"TG.CHARGE core NaN\r\n"],
    },
    Row {
        told: "-ERR the cost \"0x10\" is no whole number from 0 to 9007199254740991|+PONG|",
        said: &[b"TG.CHARGE core 0x10 token a\r\n"],
    },
    Row {
        told: "-ERR a dimension has no value: write dimension and value in turn|+PONG|",
        said: &[b"TG.CHARGE core 1 token\r\n", b"TG.STANDING a\r\n"],
    },
    Row {
        told: "-ERR the dimension \"token\" is there twice|+PONG|",
        said: &[b"TG.CHARGE core 1 token a token a\r\n"],
    },
    Row {
        told: "-ERR there is no limit \"core\\0\"|+PONG|",
        said: &[b"TG.CHARGE \"core\\x00\" 1 token a\r\n"],
    },
    Row {
        told: "-ERR the cost \"18446744073709551616\" is no whole number from 0 to 9007199254740991|+PONG|",
        said: &[b"TG.CHARGE core 18446744073709551616 token a\r\n"],
    },
    Row {
        told: "-ERR the cost \"+1\" is no whole number from 0 to 9007199254740991|+PONG|",
        said: &[b"TG.CHARGE core +1 token a\r\n"],
    },
    Row {
        told: "-ERR the cost \"\" is no whole number from 0 to 9007199254740991|+PONG|",
        said: &[b"TG.CHARGE core \"\" token a\r\n"],
    },
    Row {
        told: "-ERR the cost \"1e3\" is no whole number from 0 to 9007199254740991|+PONG|",
        said: &[b"TG.PEEK core 1e3 token a\r\n"],
    },
    Row {
        told: "-ERR wrong number of arguments for 'tollgate.refund' command|+PONG|",
        said: &[b"TG.REFUND\r\n", b"TG.REFUND a b\r\n"],
    },
    Row {
        told: "-ERR this is no receipt: send the text as it was given|+PONG|",
        said: &[
            b"TG.REFUND \"\"\r\n",
            b"TG.REFUND ../../etc/passwd\r\n",
            b"TG.REFUND AQ\r\n",
            b"TG.REFUND \xff\r\n",
        ],
    },
    Row { told: "-ERR the dimension is not UTF-8|+PONG|", said: &[b"TG.STANDING \xff\xfe a\r\n"] },
];
