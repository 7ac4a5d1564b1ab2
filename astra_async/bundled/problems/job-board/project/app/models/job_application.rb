class JobApplication < ApplicationRecord
  belongs_to :job
  belongs_to :user

  validates :cover_letter, presence: true

  def as_answer
    slice(:id, :cover_letter).merge(
      cv: { name: cv_name, size: cv.bytesize },
      job: job.slice(:id, :title, :company),
      applicant: user.slice(:id, :name)
    )
  end
end
