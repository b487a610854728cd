// SPDX-License-Identifier: Apache-2.0
//
// tenon-nvidia-separate-teams: a program that several teams of a block's threads run side by side (PingPong.cpp) is
// written as if there were one of them. When its barriers stand, every access of the shared memory that a team has for
// itself moves by the team's number times its size, and every barrier of the threads that hold tiles becomes one of the
// team.
//
//     nvidia.store shared %x, %p {window = 1024..1536}          %q = %p + team * 2048
//     nvidia.barrier 128 {id = 1}                         ->    nvidia.store shared %x, %q {window = 1024..3584}
//                                                               nvidia.barrier 128 plus %team {id = 2}
#include "tenon/compiler/target/nvidia/threads/Passes.h"

#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

struct SeparateTeams : PassWrapper<SeparateTeams, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SeparateTeams)
  StringRef getArgument() const override { return "tenon-nvidia-separate-teams"; }
  StringRef getDescription() const override { return "Give each team of a block's threads its shared memory and barrier"; }

  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<arith::ArithDialect>(); }

  void runOnOperation() override {
    auto teams = getOperation()->getAttrOfType<DenseI64ArrayAttr>(teamsAttr);
    auto workers = getOperation()->getAttrOfType<IntegerAttr>(workersAttr);
    if (!teams || !workers)
      return;
    begin_ = teams[1];
    bytes_ = teams[2];
    others_ = (teams[0] - 1) * bytes_;
    ImplicitLocOpBuilder b(getOperation().getLoc(), &getContext());
    b.setInsertionPointToStart(&getOperation().getBody().front());
    Value team = b.create<arith::ShRUIOp>(
        b.create<ThreadIdOp>(b.getI32Type()),
        b.create<arith::ConstantIntOp>(llvm::Log2_64(static_cast<uint64_t>(workers.getInt())), 32));
    moved_ = b.create<arith::MulIOp>(team, b.create<arith::ConstantIntOp>(bytes_, 32));
    getOperation().walk([&](Operation *op) {
      llvm::TypeSwitch<Operation *>(op)
          .Case<LoadOp, StoreOp, LdMatrixOp, StMatrixOp>([&](auto access) {
            if (std::optional<DenseI64ArrayAttr> window = widened(op, access.getWindow())) {
              access.setWindowAttr(*window);
              move(access.getAddressMutable());
            }
          })
          .Case<CpAsyncOp, TmaStoreOp>([&](auto copy) {
            if (std::optional<DenseI64ArrayAttr> window = widened(op, copy.getWindow())) {
              copy.setWindowAttr(*window);
              move(copy.getSharedMutable());
            }
          })
          .Case<WgmmaOp>([&](WgmmaOp product) {
            if (std::optional<DenseI64ArrayAttr> window = widened(op, product.getWindowA())) {
              product.setWindowAAttr(*window);
              moveDescriptor(product.getAMutable()[0]);
            }
            if (std::optional<DenseI64ArrayAttr> window = widened(op, product.getWindowB())) {
              product.setWindowBAttr(*window);
              moveDescriptor(product.getBMutable());
            }
          })
          .Case<BarrierOp>([&](BarrierOp barrier) {
            if (barrier.getId() != workerBarrier)
              return;
            barrier.setId(firstGroupBarrier);
            barrier.getNumberMutable().assign(team);
          });
    });
  }

  /// The window for all teams, of an access to what each has for itself.
  std::optional<DenseI64ArrayAttr> widened(Operation *op, std::optional<ArrayRef<int64_t>> window) {
    if (!window || (*window)[1] <= begin_)
      return std::nullopt;
    if ((*window)[0] < begin_ || (*window)[1] > begin_ + bytes_) { // no barrier would keep the teams apart
      op->emitOpError("touches shared memory of a team and other memory");
      signalPassFailure();
      return std::nullopt;
    }
    return DenseI64ArrayAttr::get(&getContext(), {(*window)[0], (*window)[1] + others_});
  }

  void move(OpOperand &address) {
    OpBuilder b(address.getOwner());
    address.set(b.create<arith::AddIOp>(address.getOwner()->getLoc(), address.get(), moved_));
  }

  /// Addresses in descriptors count in 16 bytes.
  void moveDescriptor(OpOperand &descriptor) {
    ImplicitLocOpBuilder b(descriptor.getOwner()->getLoc(), descriptor.getOwner());
    Value units = b.create<arith::ShRUIOp>(moved_, b.create<arith::ConstantIntOp>(4, 32));
    descriptor.set(
        b.create<arith::AddIOp>(descriptor.get(), b.create<arith::ExtUIOp>(b.getI64Type(), units)));
  }

  int64_t begin_ = 0, bytes_ = 0, others_ = 0;
  Value moved_; ///< i32: how far this team's memory is from the first's
};

} // namespace

std::unique_ptr<Pass> createSeparateTeamsPass() { return std::make_unique<SeparateTeams>(); }

} // namespace tenon::nvidia
