import { defineJob } from '../job/define-job.js'
import type { StandardSchema } from '../job/standard-schema.js'

export interface WorkloadPayload {
  /** Position in the workload: how a start is matched with its enqueue. */
  readonly index: number
  readonly durationMs: number
}

const payload: StandardSchema<WorkloadPayload> = {
  '~standard': {
    version: 1,
    vendor: 'tenantry',
    validate: (value) => {
      const { index, durationMs } = value as Partial<WorkloadPayload>
      if (Number.isSafeInteger(index) && Number.isFinite(durationMs)) return { value: value as WorkloadPayload }
      return { issues: [{ message: 'expected the payload of a workload job' }] }
    },
  },
}

/** A job that does nothing for as long as it says. */
export const workloadJob = defineJob({ kind: 'workload-job', payload })
