/** Limits that every node and client of the network agrees on. Units last. */
export const LIMITS = {
  /** A JSON request body (facts of deployed nodes: 1 MiB). */
  jsonBodyBytes: 1024 * 1024,
  /** A JSON body that is kept as a file without a signature (POST /storage/add_json). */
  unpinnedJsonBytes: 4 * 1024 * 1024,
  /** Nesting of arrays and objects in a JSON body. */
  jsonDepth: 64,
  /** How far a timestamp may be ahead of the node's clock (docs/decisions.md 4). */
  futureSeconds: 600,
  /** A message that is there only so long after its timestamp is late: its date may have been chosen (effective-time.ts). */
  lateSeconds: 600,
  /** How far a revocation reaches back: as far as a message can be dated back without being late. */
  revocationSeconds: 600,
  channelChars: 128,
  nonceChars: 128,
  addressChars: 128,
  signatureChars: 1024,
  postTypeChars: 128,
  refChars: 256,
  tagChars: 128,
  tags: 64,
  pageSizeDefault: 20,
  pageSizeMax: 100,
  /** `page` times `limit` stays within what a database offset can do; deeper reads use a cursor. */
  pageMax: 1_000_000,
  /** A longer message is not repeated in lists and events: asked for by its hash, it is whole. */
  listedBodyBytes: 16 * 1024,
  /** Values in one comma-separated filter. */
  filterValues: 200,
  instanceNameChars: 64,
  instanceDescriptionChars: 1024,
  instanceCpuMax: 256,
  instanceMemoryMibMin: 128,
  instanceMemoryMibMax: 1024 * 1024,
  instanceDiskGibMax: 2048,
  instancePortsMax: 64,
  imageNameChars: 128,
  sshKeyChars: 8192,
  /** Code points of a content that travels inside its message (facts of deployed nodes). */
  inlineContentChars: 200_000,
  /** A content that is a file of its own. */
  contentFileBytes: 4 * 1024 * 1024,
  /** So many times as long as JSON writes it a number of a content may be without its exponent... */
  numberGrowth: 4,
  /** ...and all numbers of one content together so many characters longer. */
  grownNumberChars: 32 * 1024,
  messageTypeChars: 32,
  aggregateKeyChars: 256,
  /** A member of an aggregate at its top level: it is found by its name. */
  aggregateFieldChars: 256,
  /** Members at the top level of one element: each is written, and taken back, by itself. An aggregate of several elements may have more. */
  aggregateFields: 1_000,
  /** Of the `authorizations` of a `security` aggregate, as compact JSON: they are read again for what others do on the owner's behalf. */
  authorizationsChars: 64 * 1024,
  forgetHashes: 1000,
  forgetReasonChars: 1000,
  programNameChars: 64,
  programDescriptionChars: 1024,
  /** Source text; larger programs are files, named by hash. */
  programCodeChars: 256 * 1024,
  /** Of such a file, packed or not. */
  programFileBytes: 64 * 1024 * 1024,
  programMemoryMibMin: 16,
  programMemoryMibMax: 64 * 1024,
  programTimeoutSecondsMax: 3600,
  webhookSecretChars: 256,
  webhookFilterValues: 100,
  webhookConcurrencyMax: 32,
  webhookOverlapSecondsMax: 30 * 86_400,
  reasonChars: 1024,
  urlChars: 2048,
  /** In UTF-8. */
  vrfSeedBytes: 1024,
  vrfCountMax: 1000,
  /** Of one announcement. */
  vrfPublishedKeys: 100,
} as const;
