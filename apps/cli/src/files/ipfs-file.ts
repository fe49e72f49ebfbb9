/** Loaded for files of IPFS alone: it brings what reads their blocks. */
export { openCidFile } from '@skerry/compute/cid-file';
