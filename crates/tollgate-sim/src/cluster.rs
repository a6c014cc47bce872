//! All servers and sentinels of a world, with their connections, their replication and their
//! faults.

mod slots;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};
use tollgate_core::Timestamp;
use tollgate_link::simulation::{ByteStream, Connecting, Network as NodeNetwork};

use crate::network::{Network, Party, Stream};
use crate::plan::{Plan, StoreKind, sentinel_name};
use crate::sentinel::Sentinel;
use crate::server::{
    Args, Malformed, Membership, Reply, Role, Server, Session, SlotOwners, Write, command,
    memcached,
};
use crate::trace::Trace;

/// The time between two attempts to connect to a server that does not answer, as with TCP's SYN
/// packets.
const SYN_PERIOD: Duration = Duration::from_millis(200);

/// The largest number of bytes that a server reads at once.
const CHUNK: usize = 4_096;

/// The longest command that a server reads, in bytes.
const MAX_COMMAND_BYTES: usize = 1 << 20;

/// The servers and sentinels of a world, with their connections.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) network: Arc<Network>,
    pub(crate) trace: Trace,
    servers: Mutex<Vec<Server>>,
    sentinels: Vec<Mutex<Sentinel>>,
    /// For each sentinel, the sequence number and the name of its last event.
    events: Vec<watch::Sender<(u64, &'static str)>>,
    /// The host names of the servers, followed by the host names of the sentinels.
    names: Vec<String>,
    /// The number of nodes. In the network, a [`Party`] is a number, and the nodes have the first
    /// numbers.
    nodes: usize,
    /// Whether the servers are memcached servers.
    is_memcached: bool,
    /// Whether each server and each sentinel is frozen.
    frozen: Vec<watch::Sender<bool>>,
    /// The tasks that serve the connections of each server and each sentinel.
    tasks: Mutex<Vec<Vec<AbortHandle>>>,
    replication_delay: Duration,
    next_epoch: Mutex<u64>,
}

impl Cluster {
    /// Creates the servers of `plan`. The first server of each shard is the primary.
    pub(crate) fn new(plan: &Plan, start: Instant, trace: Trace) -> Arc<Self> {
        let mut servers = Vec::new();
        for (index, place) in plan.servers().enumerate() {
            let offset = plan.server_clocks[index];
            let mut server = Server::new(place.name(), place.shard, start, offset);
            if place.number == 0 {
                server.lead(index as u64 + 1);
            }
            servers.push(server);
        }
        for index in 0..servers.len() {
            let primary = plan.primary_of(servers[index].shard);
            if index != primary {
                let (before, after) = servers.split_at_mut(index);
                after[0].follow(primary, &before[primary]);
            }
        }
        if plan.store == StoreKind::Cluster {
            let primary = |server: &Server| match server.role {
                Role::Primary => None,
                Role::Replica(primary) => Some(primary),
            };
            let owners = SlotOwners::divided(servers.iter().map(primary).collect());
            for (index, server) in servers.iter_mut().enumerate() {
                server.member = Some(Membership::new(index, owners.clone()));
            }
        }
        let of_servers = servers.iter().map(|server| server.name.clone());
        let names: Vec<_> = of_servers.chain((0..plan.sentinels).map(sentinel_name)).collect();
        Arc::new(Self {
            network: Network::new(plan.seed ^ 0x6e65_7477, plan.delays),
            trace,
            sentinels: (0..plan.sentinels).map(|_| Mutex::new(Sentinel::new(plan))).collect(),
            events: (0..plan.sentinels).map(|_| watch::Sender::new((0, ""))).collect(),
            frozen: names.iter().map(|_| watch::Sender::new(false)).collect(),
            tasks: Mutex::new(names.iter().map(|_| Vec::new()).collect()),
            next_epoch: Mutex::new(servers.len() as u64 + 1),
            servers: Mutex::new(servers),
            names,
            nodes: plan.nodes,
            is_memcached: plan.store == StoreKind::Memcached,
            replication_delay: Duration::from_millis(plan.replication_delay),
        })
    }

    /// Returns the number that a server or a sentinel has in the network. `server` is its index in
    /// the list of all servers, followed by all sentinels.
    pub(crate) const fn party(&self, server: usize) -> Party {
        self.nodes + server
    }

    /// Returns the host name of a server or a sentinel.
    pub(crate) fn name_of(&self, server: usize) -> &str {
        &self.names[server]
    }

    /// Holds back all packets from and to `node`, or delivers them again.
    pub(crate) fn set_cut_off(&self, node: Party, on: bool) {
        for server in (0..self.names.len()).map(|server| self.party(server)) {
            self.network.set_blocked(node, server, on);
            self.network.set_blocked(server, node, on);
        }
    }

    fn next_replication_id(&self) -> u64 {
        let mut next_epoch = self.next_epoch.lock();
        *next_epoch += 1;
        *next_epoch
    }

    /// Connects `node` to the server or the sentinel with the host name `host`.
    async fn connect(self: &Arc<Self>, node: Party, host: &str) -> io::Result<Stream> {
        let Some(server) = self.names.iter().position(|name| name == host) else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no such host"));
        };
        let party = self.party(server);
        sleep(self.network.delay(node, party, 0)).await;
        while self.network.is_silent(party)
            || self.network.is_blocked(node, party)
            || self.network.is_blocked(party, node)
        {
            sleep(SYN_PERIOD).await;
        }
        sleep(self.network.delay(party, node, 0)).await;
        let servers = {
            let servers = self.servers.lock();
            if servers.get(server).is_some_and(|server| !server.is_alive) {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            servers.len()
        };
        // A frozen server also accepts connections, because its operating system does.
        let (near, far) = self.network.connection(node, party);
        self.trace.record(|| (host.to_owned(), format!("node {node} connects")));
        let this = Arc::clone(self);
        let task = match server.checked_sub(servers) {
            None => tokio::spawn(this.serve(server, node, far)),
            Some(sentinel) => tokio::spawn(this.announce(sentinel, server, node, far)),
        };
        let task = task.abort_handle();
        let tasks = &mut self.tasks.lock()[server];
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
        Ok(near)
    }

    /// Serves one connection from `node` to `server` until the connection ends.
    async fn serve(self: Arc<Self>, server: usize, node: Party, mut stream: Stream) {
        let mut frozen = self.frozen[server].subscribe();
        let (mut bytes, mut replies, mut chunk) = (Vec::new(), Vec::new(), vec![0; CHUNK]);
        let mut session = Session::default();
        loop {
            match stream.read(&mut chunk).await {
                Ok(0) | Err(_) => return,
                Ok(length) => bytes.extend_from_slice(&chunk[..length]),
            }
            let mut executed = 0;
            loop {
                if *frozen.borrow() {
                    // An error means that the world has ended.
                    let _ = frozen.wait_for(|is_frozen| !is_frozen).await;
                }
                let Ok(next) = self.command(&bytes[executed..]) else { return };
                let Some((args, length)) = next else { break };
                executed += length;
                let reply = self.execute(server, &args, &mut session);
                self.trace.record(|| {
                    let verb = args.first().map(|verb| String::from_utf8_lossy(verb));
                    let what = format!("node {node}: {} {reply}", verb.unwrap_or_default());
                    (self.names[server].clone(), what)
                });
                reply.write(&mut replies);
            }
            bytes.drain(..executed);
            if bytes.len() > MAX_COMMAND_BYTES || stream.write_all(&replies).await.is_err() {
                return;
            }
            replies.clear();
        }
    }

    /// Serves one connection from `node` to a sentinel until the connection ends. `server` is the
    /// index of the sentinel, counted after all servers.
    async fn announce(
        self: Arc<Self>,
        sentinel: usize,
        server: usize,
        node: Party,
        mut stream: Stream,
    ) {
        let mut frozen = self.frozen[server].subscribe();
        let mut events = self.events[sentinel].subscribe();
        let (mut bytes, mut out, mut is_subscribed) = (Vec::new(), Vec::new(), false);
        let mut chunk = vec![0; CHUNK];
        loop {
            tokio::select! {
                biased;
                read = stream.read(&mut chunk) => match read {
                    Ok(0) | Err(_) => return,
                    Ok(length) => bytes.extend_from_slice(&chunk[..length]),
                },
                Ok(()) = events.changed(), if is_subscribed => {
                    let (_, event) = *events.borrow_and_update();
                    self.trace.record(|| {
                        (self.names[server].clone(), format!("node {node}: {event}"))
                    });
                    let args = ["message", event, "limits"].map(Reply::text);
                    Reply::Push(args.into()).write(&mut out);
                }
            }
            // An error means that the world has ended.
            let _ = frozen.wait_for(|is_frozen| !is_frozen).await;
            while let Ok(Some((args, length))) = command(&bytes) {
                is_subscribed |= args.first().is_some_and(|verb| *verb == b"SUBSCRIBE");
                let replies = self.sentinels[sentinel].lock().answer(&args);
                self.trace.record(|| {
                    let args: Vec<_> =
                        args.iter().take(2).map(|word| String::from_utf8_lossy(word)).collect();
                    (self.names[server].clone(), format!("node {node}: {}", args.join(" ")))
                });
                replies.iter().for_each(|reply| reply.write(&mut out));
                bytes.drain(..length);
            }
            if bytes.len() > MAX_COMMAND_BYTES || stream.write_all(&out).await.is_err() {
                return;
            }
            out.clear();
        }
    }

    /// Changes the reports of a sentinel. `change` makes the change and returns the name of an
    /// event, which the sentinel sends to its subscribers.
    fn report(&self, sentinel: usize, change: impl FnOnce(&mut Sentinel) -> &'static str) {
        let event = change(&mut self.sentinels[sentinel].lock());
        self.events[sentinel].send_modify(|last| *last = (last.0 + 1, event));
    }

    /// Makes a sentinel report `primary` as the primary of its shard.
    pub(crate) fn name(&self, sentinel: usize, primary: usize) {
        let shard = self.servers.lock()[primary].shard;
        let name = &self.names[primary];
        self.report(sentinel, |sentinel| sentinel.name(shard, name));
    }

    /// Makes a sentinel report whether the primary of a shard may be down. `is_in_doubt` is true if
    /// it may be down.
    pub(crate) fn doubt(&self, sentinel: usize, shard: usize, is_in_doubt: bool) {
        self.report(sentinel, |sentinel| sentinel.doubt(shard, is_in_doubt));
    }

    /// Returns the first command in `bytes` and its length, or `None` while the command is
    /// incomplete.
    fn command<'b>(&self, bytes: &'b [u8]) -> Result<Option<(Args<'b>, usize)>, Malformed> {
        if self.is_memcached { memcached::command(bytes) } else { command(bytes) }
    }

    /// Executes a command at `server`, and replicates the writes of the command. Returns the reply.
    fn execute(&self, server: usize, args: &[&[u8]], session: &mut Session) -> Reply {
        let servers = &mut *self.servers.lock();
        if self.is_memcached {
            return Reply::Raw(servers[server].execute_memcached(args));
        }
        if let [verb, load, script] = args
            && *verb == b"SCRIPT"
            && *load == b"LOAD"
        {
            return servers[server].load_script(script);
        }
        if servers[server].member.is_some() {
            servers[server].catch_up();
            if let Some(reply) = servers[server].redirect(args, session, &self.names) {
                return reply;
            }
        }
        let (reply, writes) = servers[server].execute(args, &self.names);
        self.write(servers, server, writes);
        reply
    }

    /// Applies `writes` to `server`, and sends them to the replicas of `server`.
    fn write(&self, servers: &mut [Server], server: usize, writes: Vec<Write>) {
        for replica in servers.iter_mut().filter(|it| it.role == Role::Replica(server)) {
            let delay = self.replication_delay;
            writes.iter().for_each(|write| replica.receive(write.clone(), delay));
        }
        writes.into_iter().for_each(|write| servers[server].apply(write));
    }

    /// Breaks all connections of `server`.
    pub(crate) fn disconnect(&self, server: usize) {
        self.tasks.lock()[server].drain(..).for_each(|task| task.abort());
        self.network.reset(self.party(server));
    }

    pub(crate) fn set_frozen(&self, server: usize, is_frozen: bool) {
        self.frozen[server].send_replace(is_frozen);
    }

    /// Ends the process of `server`. If `is_silent` is set, the machine of the server is lost too,
    /// and the connections end without a packet to the nodes.
    pub(crate) fn crash(&self, server: usize, is_silent: bool) {
        self.servers.lock()[server].is_alive = false;
        self.network.set_silent(self.party(server), is_silent);
        if is_silent {
            self.tasks.lock()[server].drain(..).for_each(|task| task.abort());
        } else {
            self.disconnect(server);
        }
    }

    /// Starts `server` again. The server keeps its data if `has_data` is set.
    pub(crate) fn start(&self, server: usize, has_data: bool) {
        // After the restart, the machine resets the connections that were open before.
        self.network.set_silent(self.party(server), false);
        self.disconnect(server);
        self.set_frozen(server, false);
        let replication_id = self.next_replication_id();
        let servers = &mut *self.servers.lock();
        servers[server].restart(has_data, replication_id);
        if let (Role::Primary, false) = (servers[server].role, has_data) {
            resync_followers(servers, server);
        }
    }

    /// Makes `server` a primary. Its data contains only the writes that have been replicated to it.
    pub(crate) fn promote(&self, server: usize) {
        let replication_id = self.next_replication_id();
        let servers = &mut *self.servers.lock();
        if let Role::Replica(before) = servers[server].role {
            slots::take_over(servers, before, server);
        }
        servers[server].lead(replication_id);
    }

    /// Makes `server` a replica of `primary`, with a copy of the primary's data.
    pub(crate) fn follow(&self, server: usize, primary: usize) {
        let servers = &mut *self.servers.lock();
        if server != primary {
            let source = std::mem::replace(
                &mut servers[primary],
                Server::new(String::new(), 0, Instant::now(), 0),
            );
            servers[server].follow(primary, &source);
            servers[primary] = source;
            slots::follow(servers, server, primary);
        }
    }

    /// Calls `change` with the state of `server`.
    pub(crate) fn with(&self, server: usize, change: impl FnOnce(&mut Server)) {
        change(&mut self.servers.lock()[server]);
    }

    /// Deletes all keys of `server` and of its replicas.
    pub(crate) fn flush(&self, server: usize) {
        let servers = &mut *self.servers.lock();
        self.write(servers, server, vec![Write::Flush]);
    }

    /// Removes half of the keys of `server` and of its replicas, as a server does that is out of
    /// memory.
    pub(crate) fn evict(&self, server: usize) {
        let servers = &mut *self.servers.lock();
        let writes = servers[server].evict();
        self.write(servers, server, writes);
    }

    /// Returns the times of the clocks of all primaries.
    pub(crate) fn primary_times(&self) -> Vec<Timestamp> {
        let mut servers = self.servers.lock();
        let primaries = servers.iter_mut().filter(|server| server.role == Role::Primary);
        let time = |server: &mut Server| {
            server.catch_up();
            server.now()
        };
        primaries.map(time).collect()
    }

    pub(crate) fn is_alive(&self, server: usize) -> bool {
        self.servers.lock()[server].is_alive
    }
}

/// Copies the data of `primary` to its replicas. If the primary restarted without data, its
/// replicas then have no data either.
fn resync_followers(servers: &mut [Server], primary: usize) {
    for index in 0..servers.len() {
        if servers[index].role == Role::Replica(primary) && index != primary {
            let (low, high) = servers.split_at_mut(index.max(primary));
            let (follower, source) = if index > primary {
                (&mut high[0], &low[primary])
            } else {
                (&mut low[index], &high[0])
            };
            follower.follow(primary, source);
        }
    }
}

/// The network as one node sees it: the way in which the node's store connects to servers.
#[derive(Debug)]
pub(crate) struct NodeLinks {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) node: Party,
}

impl NodeNetwork for NodeLinks {
    fn connect<'a>(&'a self, host: &'a str, _port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let stream = self.cluster.connect(self.node, host).await?;
            Ok(Box::new(stream) as Box<dyn ByteStream>)
        })
    }
}
