// Plain JavaScript, as launch.js is.

/** Commands of a network's clients: they run from what `npm ci` bundled (tools/bundle.js), where it did. The others load services. */
export const CLIENTS = new Set(
  '--help -h --version -V help completion domain file indexer instance key message network node program score vrf webhook'.split(
    ' ',
  ),
);
