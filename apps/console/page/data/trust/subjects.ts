/** What a mark stands beside: what it follows from, and what it leaves open. */
export interface Meaning {
  readonly what: string;
  readonly by: string;
  readonly open: string;
}

export const SUBJECTS = {
  message: {
    what: 'a message',
    by: 'its hash and signature; the text is on its page, byte by byte',
    open: 'its status, when it came, the channel in the network form, and of an upload all but the hash of the file',
  },
  delegation: {
    what: 'whom somebody signed for',
    by: 'what the owner signed of who may, by the rules of core nodes',
    open: 'that the owner signed nothing newer',
  },
  machine: {
    what: 'a machine, and a line of its history',
    by: 'the folding of its signed messages, which its history links',
    open: 'that no message is missing, or newer',
  },
  hostname: { what: 'a host name', by: "the machine's hash", open: 'that a gateway leads there: it says so' },
  address: {
    what: 'an address',
    by: "the machine's hash, and the newest allocation of a scheduler that you believe",
    open: 'that the machine answers there',
  },
  score: {
    what: 'a score',
    by: 'the message of a monitor; "Recompute" does the scoring again, line by line',
    open: 'that the monitor measured honestly',
  },
  node: {
    what: 'where a node is',
    by: 'its newest announcement; "Ask for its key there" has it sign',
    open: 'in which country, and who runs it',
  },
  system: {
    what: 'the network that a node is in',
    by: 'the newest measurement of a monitor, whose signature and hash were checked',
    open: "the monitor's table of networks, and in which country it is",
  },
  core: {
    what: 'where a core node is',
    by: 'its signature over the URL and what this tab made up, with the key that it announced',
    open: 'that it is the node of somebody whom you know: compare its key',
  },
  balance: {
    what: 'a balance',
    by: '"Add up": the signed lines of credit publishers that you believe',
    open: 'that the core node lists every line',
  },
  random: {
    what: 'random values',
    by: 'seed, range, and the proof of the key, which are beside them',
    open: 'who chose the seed, and how often',
  },
  confirmation: {
    what: 'a confirmation',
    by: 'the transaction and the archive, from an endpoint that you name',
    open: 'that the endpoint tells the truth, and the block stays',
  },
  file: {
    what: 'a file that you send',
    by: 'its hash, which is computed here and signed',
    open: 'how long nodes keep it',
  },
  digest: {
    what: 'a digest of all that a core node has',
    by: 'the lists and signed messages that were read, folded in this tab',
    open: 'that the lists are those of the network',
  },
  agreement: {
    what: 'whether nodes agree',
    by: 'the answers of core nodes whose keys answer at their URLs, on the page Trust',
    open: 'that different people run them',
  },
  certificate: {
    what: 'a certificate',
    by: 'what this browser got when it asked the machine by HTTPS',
    open: 'where nothing came, why: no TLS, or a certificate that is not believed',
  },
  price: {
    what: 'a price',
    by: 'the core node\'s price list; the charges that follow are signed, and "Add up" checks them',
    open: 'that it stays, and that other core nodes have the same',
  },
  coreWord: {
    what: 'what a core node says',
    by: 'its answer alone',
    open: 'all of it, but for what has a mark of its own',
  },
  schedulerWord: {
    what: 'what a scheduler says',
    by: 'its answer; where it placed a machine it also signed, which the history of the machine shows',
    open: 'its reasons, what room there is, and which nodes are healthy',
  },
  gatewayWord: {
    what: 'what a gateway says',
    by: 'its answer; nobody knows it by a key',
    open: 'that it leads where it says; names are computed here, and have marks of their own',
  },
  statusWord: {
    what: 'what a status service says',
    by: 'its answer; nobody knows it by a key',
    open: 'that it asked, and what it heard',
  },
  creditWord: {
    what: 'what a credit service says',
    by: 'its answer; the credits that it gives are signed messages',
    open: 'that it lists every transfer',
  },
  nodeWord: {
    what: 'what the node of a machine or program says',
    by: 'its answer; its owner signed that this tab may ask',
    open: 'that it tells all, and nothing else than what happened',
  },
  monitorWord: {
    what: 'what monitors say',
    by: 'their measurements, which they signed; "Recompute" checks them',
    open: 'that they measured honestly, and that none is missing',
  },
  chainWord: {
    what: 'what a core node read from a chain',
    by: 'its answer, as the endpoints of its operator gave it',
    open: 'that the endpoints tell the truth, and that nothing is missing',
  },
  page: {
    what: 'this page',
    by: 'nothing in it: "skerry console --check" compares it with a signed release',
    open: 'that the same is served to others, and tomorrow',
  },
} as const satisfies Readonly<Record<string, Meaning>>;

export type Subject = keyof typeof SUBJECTS;
