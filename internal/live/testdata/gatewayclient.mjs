// Drives the real client of the gateway protocol: one JSON command per line in, one JSON line out for everything that
// happens. Arguments: entry point of the client, address, token, version of the protocol, name of the device, scopes.
import { createHash, createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { createInterface } from "node:readline";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const [entry, url, token, version, keyFile, scopes] = process.argv.slice(2);
const { GatewayClient } = await import(entry);
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");

const rawKey = (pem) => createPublicKey(pem).export({ type: "spki", format: "der" }).subarray(-32);

function identity() {
  if (!existsSync(keyFile)) {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const publicKeyPem = publicKey.export({ type: "spki", format: "pem" });
    const privateKeyPem = privateKey.export({ type: "pkcs8", format: "pem" });
    const deviceId = createHash("sha256").update(rawKey(publicKeyPem)).digest("hex");
    writeFileSync(keyFile, JSON.stringify({ deviceId, publicKeyPem, privateKeyPem }), { mode: 0o600 });
  }
  return JSON.parse(readFileSync(keyFile, "utf8"));
}

const device = keyFile === "-" ? null : identity();
const client = new GatewayClient({
  url,
  token,
  deviceIdentity: device,
  minProtocol: Number(version),
  maxProtocol: Number(version),
  clientName: "gateway-client",
  clientDisplayName: "desk " + version,
  mode: "backend",
  scopes: scopes === "" ? [] : scopes.split(","),
  hostDeps: {
    signDevicePayload: (pem, payload) => sign(null, Buffer.from(payload), pem).toString("base64url"),
    publicKeyRawBase64UrlFromPem: (pem) => rawKey(pem).toString("base64url"),
  },
  onHelloOk: (hello) => say({ kind: "hello", protocol: hello.protocol, deviceId: device?.deviceId, auth: hello.auth, hello }),
  onConnectError: (error) => say({ kind: "refused", message: String(error.message ?? error), details: error.details }),
  onEvent: (event) => say({ kind: "event", event: event.event, seq: event.seq, payload: event.payload }),
  onGap: (gap) => say({ kind: "gap", ...gap }),
  onClose: (code, reason) => say({ kind: "close", code, reason }),
});
client.start();
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, expectFinal } = JSON.parse(line);
  client
    .request(method, params, { expectFinal })
    .then((payload) => say({ kind: "answer", id, payload }))
    .catch((error) => say({ kind: "failure", id, message: String(error.message ?? error), code: error.gatewayCode ?? error.code }));
}
client.stop();
process.exit(0);
