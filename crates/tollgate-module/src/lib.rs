//! A module for Redis and Valkey servers that decides rate limits inside of the server.
//!
//! It does the same as the Lua step of `tollgate-redis`, with the code of [`tollgate_core`]. The
//! argument and the reply have the same form as those of the Lua step. A subject's state is stored
//! in a key of its own, with the value that the Lua step stores, or in a table that many subjects
//! share. The keys and the tables are strings of the server, so the server itself saves, copies and
//! moves them.
//!
//! | module | content |
//! | --- | --- |
//! | `entry` | the commands that the server registers |
//! | `request`, `reader` | the argument of a command |
//! | `step` | executes the jobs of a command; reads and writes no key itself |
//! | `charges` | charges that need no cell |
//! | `held` | the state of one place during a command |
//! | `answer` | the reply |
//! | `rule` | limits, as commands contain them |
//! | `stored` | the value of one subject |
//! | `table` | the packed table of many subjects |
//! | `keyspace` | the server's keys |
//! | `throttle` | `CL.THROTTLE` of redis-cell |

mod answer;
mod charges;
mod entry;
mod error;
mod held;
mod keyspace;
mod reader;
mod request;
mod rule;
mod step;
mod stored;
mod table;
mod throttle;
