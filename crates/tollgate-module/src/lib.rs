//! A module for Redis and Valkey servers that makes rate limit decisions inside the server.
//!
//! The module does the same as the Lua script of `tollgate-redis`, with the code of
//! [`tollgate_core`]. Its commands have the same argument and the same reply as the script. The
//! state of a subject is stored in a key of its own, with the same value as the script stores, or
//! in a table of many subjects. The keys and the tables are ordinary strings, so the server saves,
//! copies and moves them like other keys.
//!
//! | module | content |
//! | --- | --- |
//! | `entry` | the commands that the server registers |
//! | `request`, `reader` | the argument of a command |
//! | `buffers` | the lists that the execution of a command fills |
//! | `step` | executes the jobs of a command; reads and writes no key itself |
//! | `charges` | charges that need no cell |
//! | `location_state` | the state of one location during a command |
//! | `transfer` | reads and joins of whole cells |
//! | `answer` | the reply |
//! | `rule` | limits, as commands contain them |
//! | `stored` | the value of one subject |
//! | `table` | the packed table of many subjects |
//! | `slot` | one entry of a table |
//! | `keyspace` | the server's keys |
//! | `throttle` | `CL.THROTTLE` of redis-cell |

mod answer;
mod buffers;
mod charges;
mod entry;
mod error;
mod keyspace;
mod location_state;
mod reader;
mod request;
mod rule;
mod slot;
mod step;
mod stored;
mod table;
mod throttle;
mod transfer;
