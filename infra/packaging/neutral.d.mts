export interface NeutralBundle {
  readonly surface: string;
  readonly text: string;
  /** Compressed. */
  readonly bytes: number;
  readonly sources: readonly string[];
  readonly imports: readonly string[];
}
export function bundleNeutral(surfaces?: readonly string[]): Promise<readonly NeutralBundle[]>;
