export type { AnchorLocation, Anchoring } from './anchoring/anchoring.ts';
export type { HashChain } from './chain/chain.ts';
export type { ProofFinding, ProofNote } from './verify-chain/verify-report.ts';
export type { VerifyFinding, VerifyNote, VerifyProgress } from './verify/verify-run.ts';
export type { VerifySummary } from './integrity.ts';
