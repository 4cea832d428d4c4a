/* Tensors of the processor's memory on a device. On the processor itself they are where they are. */
#ifndef MF_CLI_TENSOR_THERE_H
#define MF_CLI_TENSOR_THERE_H

#include <modefold.h>

/* Memory for the tensor on the device, in the same layout, with its data if wanted; shape and strides stay where they
 * are. there->data is null after a failure. */
mf_status tensor_send(mf_device *device, const DLTensor *here, int with_data, DLTensor *there);
/* Back into the tensor that it was made from. */
mf_status tensor_fetch(mf_device *device, const DLTensor *there, const DLTensor *here);
void tensor_forget(mf_device *device, DLTensor *there);

#endif
