/** What blocks of IPFS are as files and directories (IPFS specifications, "UnixFS"). Whoever made them may lie in each of them. */

export {
  type BlockId,
  digestOfBlock,
  findBlockId,
  isReadable,
  parseBlockId,
  SHA2_256,
} from './block-id.ts';
export {
  type FileNode,
  type FilePart,
  type FileRange,
  fileNodeOf,
  isLeaf,
  isWithin,
  leafOf,
  placeParts,
} from './file.ts';
export {
  type Block,
  type DagLink,
  type DagNode,
  isFile,
  isShard,
  nodeOf,
  notUnixfs,
  type ReadBlock,
  refuseLink,
} from './node.ts';
export { walkFile } from './walk-file.ts';
