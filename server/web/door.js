// The sign-in page: somebody who is signed in already goes on to the console, or to the call that a link named.
// The path is kept per origin, port included; it is worth nothing without the cookie.

try {
  if (new URLSearchParams(location.search).has("out")) localStorage.removeItem("toolward.path");
  const path = localStorage.getItem("toolward.path") ?? "";
  const here = location.pathname;
  if (/^\/c\/[a-z0-9]{16}$/.test(path) && (here === "/" || here.startsWith("/approvals/"))) location.replace(path + here);
} catch { /* without storage the person signs in again */ }
