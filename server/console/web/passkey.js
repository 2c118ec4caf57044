// Questions to passkeys, as the gateway asks them and browsers want them: bytes here, base64url there.

export const possible = () => isSecureContext && "credentials" in navigator && "PublicKeyCredential" in window;

export const impossible = isSecureContext
  ? "This browser cannot use passkeys."
  : "Browsers use passkeys only over https, or at localhost.";

const bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const listed = (list) => list?.map((one) => ({ ...one, id: bytes(one.id) }));

function told(credential, response) {
  return { id: credential.id, rawId: text(credential.rawId), type: credential.type, response, clientExtensionResults: {} };
}

// answer has a passkey sign a question.
export async function answer(question) {
  const publicKey = { ...question, challenge: bytes(question.challenge), allowCredentials: listed(question.allowCredentials) ?? [] };
  const credential = await navigator.credentials.get({ publicKey });
  const { clientDataJSON, authenticatorData, signature, userHandle } = credential.response;
  return told(credential, {
    clientDataJSON: text(clientDataJSON), authenticatorData: text(authenticatorData), signature: text(signature),
    userHandle: userHandle ? text(userHandle) : "",
  });
}

// make has the browser make a passkey.
export async function make(question) {
  const publicKey = {
    ...question, challenge: bytes(question.challenge), user: { ...question.user, id: bytes(question.user.id) },
    excludeCredentials: listed(question.excludeCredentials) ?? [],
  };
  const credential = await navigator.credentials.create({ publicKey });
  const { clientDataJSON, attestationObject } = credential.response;
  return told(credential, {
    clientDataJSON: text(clientDataJSON), attestationObject: text(attestationObject),
    transports: credential.response.getTransports?.() ?? [],
  });
}

// send posts JSON and returns the gateway's answer, or throws what it said.
export async function send(path, body) {
  const response = await fetch(path, {
    method: "POST", headers: { "Content-Type": "application/json", Accept: "application/json" }, body: JSON.stringify(body ?? {}),
  });
  const said = await response.json();
  if (!response.ok) throw new Error(said.error);
  return said;
}

// why says what went wrong, in words for people.
export function why(error) {
  if (error.name === "NotAllowedError") return "Nothing happened: the browser was not given a passkey in time.";
  if (error.name === "InvalidStateError") return "This device holds a passkey for this console already.";
  if (error.name === "SecurityError") return "The browser refuses passkeys at this address.";
  return error.message || "The passkey could not be used.";
}
