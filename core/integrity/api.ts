export type { AnchorPlace, Anchoring } from './chain/anchoring.ts';
export type { ProofKeeper } from './chain/keeper.ts';
export type { ProofFinding, ProofNote } from './chain/verify-said.ts';
export type { VerifyFinding, VerifyNote, VerifyProgress } from './verify/run.ts';
export type { VerifySummary } from './integrity.ts';
