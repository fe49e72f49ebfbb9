/**
 * The views that are loaded when the first of them is looked at. They are one file: with one for each, esbuild would cut what they share
 * with the others into a dozen, and the first load would be as many requests.
 */
export { SignDialog } from '../keys/dialog.tsx';
export { Credits } from './credits.tsx';
export { Indexer } from './indexer/indexer.tsx';
export { MachineCost } from './machine/cost.tsx';
export { MachinePorts } from './machine/ports.tsx';
export { MachineVolumes } from './machine/volumes.tsx';
export { NamePage, Names } from './names/names.tsx';
export { NodeHistory } from './node-history.tsx';
export { Create } from './owner/create.tsx';
export { Files } from './owner/files.tsx';
export { Follow } from './owner/follow.tsx';
export { Keys } from './owner/keys.tsx';
export { MachineActions } from './owner/machine-actions.tsx';
export { ProgramPage } from './owner/program.tsx';
export { Programs } from './owner/programs.tsx';
export { Providers } from './providers.tsx';
export { RandomValues } from './random.tsx';
export { MarkDialog } from './trust/marks.tsx';
export { OnChain } from './trust/on-chain.tsx';
export { Trust } from './trust/trust.tsx';
export { Webhooks } from './webhooks/webhooks.tsx';
