// Charges through ioredis; prints what it was told as JSON.
// Arguments: port, password (or an empty one).
import Redis from "ioredis";

const [port, password] = process.argv.slice(2);
const connect = (password) =>
  new Redis({
    port: Number(port),
    password: password || undefined,
    lazyConnect: true,
    retryStrategy: null,
    maxRetriesPerRequest: 0,
  });

const client = connect(password);
client.on("error", () => {});
await client.connect();
const told = { ping: await client.ping(), charges: [] };
for (let round = 0; round < 3; round++) {
  told.charges.push(await client.call("CL.THROTTLE", "node", 1, 1, 60));
}
told.throttle = await client.call("THROTTLE", "node", 2, 1, 60);

const pipeline = client.pipeline();
for (let key = 0; key < 100; key++) {
  pipeline.call("CL.THROTTLE", `node:${key % 50}`, 0, 1, 60);
}
told.limited = (await pipeline.exec()).map(([error, reply]) => error?.message ?? reply[0]);

// Sent without waiting for each other: they travel in as few packets as they like.
const together = Array.from({ length: 100 }, () => client.call("CL.THROTTLE", "one", 99, 1, 3600));
told.remaining = (await Promise.all(together)).map((reply) => reply[2]);

told.error = await client.call("CL.THROTTLE", "node").catch((error) => error.message);
await client.quit();

const stranger = connect(password ? "wrong" : "");
stranger.on("error", (error) => (told["wrong password"] ??= error.message));
await stranger
  .connect()
  .then(async () => (told["wrong password"] = await stranger.ping()))
  .catch(() => {});
stranger.disconnect();
console.log(JSON.stringify(told));
// A timer of the client's own keeps the process for two seconds more.
process.exit();
